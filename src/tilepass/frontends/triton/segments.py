"""One compilation by Triton with Python passes at their anchors and observers looking on.

The passes of a stage are recorded (see recording.py) and run in segments: those up to the first
place where a Python pass stands, that pass, those up to the next, and so on. With observers every
pass is a separate segment.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from triton._C import libtriton

from tilepass.core.anchor import LAST_STAGE, MLIR_STAGES
from tilepass.core.assembler import AssemblerLog
from tilepass.core.errors import AnchorError, ParseError, PassFailure, TilepassError
from tilepass.core.figures import StaticFigures
from tilepass.core.pass_base import Pass, PassContext, Placed, Target
from tilepass.core.reproducer import Failure
from tilepass.core.versions import triton_version
from tilepass.frontends.observing import Compilation, ContextObserver, Origin, StageObserver
from tilepass.frontends.triton import assembling, bridge
from tilepass.frontends.triton.overriding import Overrides, no_overrides
from tilepass.frontends.triton.places import Places
from tilepass.frontends.triton.recording import (
    ModuleStandIn,
    RecordedPass,
    RecordingPassManager,
    Stage,
    is_stock,
    record_stage,
)
from tilepass.frontends.triton.targets import target_of
from tilepass.frontends.triton.trial import (
    after,
    check_shared_memory,
    make_trial,
    mute,
    report_added,
    stock_figures,
)
from tilepass.frontends.triton.triton_failure import TritonFailure
from tilepass.ir import engine

if TYPE_CHECKING:
    # The simulator is loaded only where validation is on.
    from tilepass.frontends.triton.validation import Validator

_module_type: Any = libtriton.ir.module
compiler_module: Any = importlib.import_module("triton.compiler.compiler")


@dataclass(frozen=True)
class Plan:
    """What is to happen in every compilation.

    `skipped` is told of each pass without a place in a compilation, and why.
    """

    passes: tuple[Placed, ...]
    observers: tuple[StageObserver, ...]
    make_context: Callable[[Pass, Target, Mapping[str, object]], PassContext]
    skipped: Callable[[Placed, str], None]
    validator: Validator | None = None


def instrument(
    plan: Plan,
    backend: Any,
    stages: dict[str, Stage],
    options: Any,
    language: Any,
    overrides: Overrides = no_overrides,
) -> None:
    """Replace the functions of a stage table so that `plan` is carried out.

    Raises AnchorError for a pass whose stage the table does not have.
    """
    target = target_of(backend.target)
    language_name = language.name.lower()

    def where() -> str:
        return f"{triton_version()} for {target} ({language_name})"

    places = Places(plan.passes, where, plan.skipped, lenient=language_name != "triton")
    options = options.__dict__.copy()
    weaving = Weaving(
        plan, backend, places, target, options, language_name, overrides, dict(stages)
    )
    places.find_stages(list(stages))
    for name, stage in stages.items():
        stages[name] = weaving.stage(name, stage)


@dataclass
class _Begun:
    """What the first stage was given, to compile a kernel once more without passes of tilepass."""

    stage: str = ""
    text: str = ""
    context: Any = None
    metadata: dict[str, Any] = field(default_factory=dict[str, Any])

    def keep(self, stage: str, module: Any, metadata: Mapping[str, Any]) -> None:
        """Keep it, once."""
        if not self.stage:
            self.stage, self.context = stage, module.context
            self.text, self.metadata = bridge.generic_text(module), dict(metadata)

    def compile(self, stages: Mapping[str, Stage]) -> Any:
        """The module at the end of ttgir."""
        names = list(stages)
        return self.run(stages, names[names.index(LAST_STAGE) - 1], dict(self.metadata))

    def run(self, stages: Mapping[str, Stage], last: str, metadata: dict[str, Any]) -> Any:
        """What comes of the stages up to this one."""
        module: Any = bridge.load(self.text, "kernel.mlir", self.context)
        names = list(stages)
        for name in names[names.index(self.stage) : names.index(last) + 1]:
            module = stages[name](module, metadata)
        return module


@dataclass
class Weaving:
    """The state of one compilation, or of a trial: then `quiet`, and nobody hears of it.

    `stages` are the stage functions without passes of tilepass; once something has failed late
    where that is to be skipped, all passes are `left_out`. Where rewrites are validated,
    `source` is the module before the first one and `last` that after the last.
    """

    plan: Plan
    backend: Any
    places: Places
    target: Target
    options: Mapping[str, object]
    language: str
    overrides: Overrides
    stages: Mapping[str, Stage]
    quiet: bool = False
    metadata: Any = None
    current: str = ""
    begun: bool = False
    changed_by: list[Placed] = field(default_factory=list[Placed])
    rewriters: list[Pass] = field(default_factory=list[Pass])
    ran: list[tuple[Pass, PassContext]] = field(default_factory=list[tuple[Pass, PassContext]])
    unchanged: Callable[[], StaticFigures] | None = None
    log: AssemblerLog | None = None
    index: int = 0
    source: str = ""
    last: str = ""
    kept: _Begun = field(default_factory=_Begun)
    left_out: bool = False

    def stage(self, name: str, stage: Stage) -> Stage:
        """The stage with passes at its start, in it, and at its end."""
        is_mlir = name in MLIR_STAGES or name == LAST_STAGE
        is_heard = bool(self.plan.passes) or self.quiet
        if name == assembling.STAGE and is_heard and is_stock(stage, self.backend):
            stage = assembling.read_log(stage, self.backend, self._assembled)
        if not is_mlir and not self.plan.observers:
            return stage

        def run(source: Any, metadata: Any) -> Any:
            self.current, self.metadata = name, metadata
            self._begin(source, metadata)
            if not is_mlir:
                return self._done(stage(source, metadata))
            if self._may_start_again and name != LAST_STAGE:
                self.kept.keep(name, source, metadata)
            try:
                result = self._run_mlir(stage, source)
            except AnchorError:
                raise
            except TilepassError as error:
                result = self._start_again(error)
            return self._done(result)

        return run

    def _run_mlir(self, stage: Stage, source: Any) -> Any:
        """A stage of MLIR, with all passes."""
        at_start = self.places.at_stage("start", self.current)
        source = self.run_python(
            at_start, source, lambda other, module: other._from_start(stage, module)
        )
        if self.current != LAST_STAGE:
            return self._from_start(stage, source)
        self._validate_result(source)
        result = self._from_start(stage, source)
        if not self.left_out:
            self.places.check_passes()
        check_shared_memory(self)
        return result

    @property
    def _may_start_again(self) -> bool:
        skips = any(placed.on_failure == "skip" for placed in self.plan.passes)
        return not self.quiet and (skips or self.plan.validator is not None)

    def _start_again(self, error: TilepassError) -> Any:
        """The kernel without passes, up to the present stage, where what they made of it has failed
        since and their failures are to be skipped. Raises `error` where not."""
        stops = any(placed.on_failure == "stop" for placed in self.changed_by)
        if stops or not self.changed_by or not self.kept.stage:
            raise error
        for _, context in self.ran:
            context.retract()
        for instance in dict.fromkeys(placed.instance for placed in self.changed_by):
            context = self.context_of(instance)
            context.remarks.missed(None, f"all passes are left out of this kernel: {error}")
        self.left_out = True
        self.ran.clear()
        self.changed_by.clear()
        self.rewriters.clear()
        self.metadata.clear()
        self.metadata.update(self.kept.metadata)
        return self.kept.run(self.stages, self.current, self.metadata)

    def _from_start(self, stage: Stage, source: Any) -> Any:
        """The stage itself, and the passes at its end."""
        return self._at_end(self._run_stage(stage, source, self.metadata))

    def _at_end(self, result: Any) -> Any:
        at_end = self.places.at_stage("end", self.current)
        return self.run_python(at_end, result, lambda _, module: module)

    def _assembled(self, text: str) -> None:
        self.log = AssemblerLog.parse(text)
        if self.quiet:
            return
        for instance, context in self.ran:
            instance.assembled(self.log, context)
        report_added(self)

    def _run_stage(self, stage: Stage, source: Any, metadata: Any) -> Any:
        """Run the stage's function, recording its passes if anyone is interested in them."""
        interest = self.places.need_passes or self.plan.observers or self.changed_by
        visible = is_stock(stage, self.backend) and not self._is_instrumented(self.current)
        # The stage `glir` has no passes.
        self.places.begin(self.current, opaque=not visible and self.current != "glir")
        if not interest or not visible:
            return stage(source, metadata)
        recording = record_stage(stage, self.backend, self._run_segments)
        result = recording(ModuleStandIn(source), metadata)
        return result.module if isinstance(result, ModuleStandIn) else result

    def _done(self, result: Any) -> Any:
        if override := self.overrides(self.current):
            result = self._overridden(*override, result)
        for observer in self.plan.observers:
            observer.after_stage(self.current, lambda: _artifact(result))
        return result

    def _overridden(self, file: str, setting: str, result: Any) -> Any:
        """What Triton is going to take for `result`: the passes that made it get no credit."""
        for instance in dict.fromkeys(placed.instance for placed in self.changed_by):
            context = self.plan.make_context(instance, self.target, self.options)
            replaced = (
                f"{setting}: '{file}' replaces the {self.current} that the pass had a part in"
            )
            context.remarks.missed(None, f"{replaced}; nothing of it is in the binary")
        self.changed_by.clear()
        self.rewriters.clear()
        result = compiler_module.parse(file, self.current, getattr(result, "context", None))
        artifact = _artifact(result)
        if isinstance(artifact, str):
            self._observe(f"override {file}", "override", lambda: artifact)
        return result

    def _begin(self, source: Any, metadata: Mapping[str, Any]) -> None:
        if self.begun:
            return
        self.begun = True
        for observer in self.plan.observers:
            kernel = source.get_entry_func_name() if isinstance(source, _module_type) else ""
            compilation = Compilation(
                metadata["hash"], kernel, self.language, self.target, self.options
            )
            observer.begin(compilation, lambda: str(_artifact(source)))

    def _validate(self, rewrite: bridge.Rewrite) -> None:
        assert self.plan.validator is not None
        self.plan.validator.check_values(rewrite)
        self.rewriters.append(rewrite.passes[-1])
        self.source = self.source or rewrite.before
        self.last = engine.print_generic(rewrite.after)

    def _validate_result(self, module: Any) -> None:
        """Before the lowering to LLVM, with all that Triton's passes made of a rewrite."""
        validator = self.plan.validator
        if validator is None or not self.rewriters:
            return
        context = self.plan.make_context(self.rewriters[-1], self.target, self.options)
        if engine.print_generic(bridge.to_engine(module)) != self.last:
            validator.check_result(
                self.source, module, self.rewriters, context, lambda: self.kept.compile(self.stages)
            )
        validator.check_protocol(module, self.rewriters, context)

    def context_of(self, instance: Pass) -> PassContext:
        """The context of a pass, without a way to try things."""
        context = self.plan.make_context(instance, self.target, self.options)
        if self.quiet:
            mute(context)
        return context

    def run_python(self, passes: Sequence[Placed], module: Any, rest: Rest) -> Any:
        """Run passes that stand at one place; `rest` is what the stage does after them."""
        if not passes or not self.plan.passes or self.left_out:
            return module
        if all(placed.on_failure == "stop" for placed in passes):
            return self._run_together(passes, module, rest)
        for index, placed in enumerate(passes):
            later = passes[index + 1 :]
            module = self._run_or_leave_out(placed, module, after(later, rest))
        return module

    def _run_or_leave_out(self, placed: Placed, module: Any, rest: Rest) -> Any:
        """Run a pass; the kernel goes on as it was before one that fails."""
        ran = len(self.ran)
        try:
            return self._run_together([placed], module, rest)
        except TilepassError as error:
            for _, failed in self.ran[ran:]:
                failed.retract()
            del self.ran[ran:]
            context = self.context_of(placed.instance)
            context.remarks.missed(None, f"left out of this kernel: {error}")
            return module

    def _run_together(self, passes: Sequence[Placed], module: Any, rest: Rest) -> Any:
        instances = [placed.instance for placed in passes]

        def make_context(instance: Pass) -> PassContext:
            context = self.context_of(instance)
            if not self.quiet:
                following = passes[instances.index(instance) + 1 :]
                context.trial = make_trial(self, after(following, rest), following)
            for observer in self.plan.observers:
                if isinstance(observer, ContextObserver):
                    observer.before_pass(context)
            self.ran.append((instance, context))
            return context

        def after_pass(instance: Pass, text: Callable[[], str]) -> None:
            self._observe(str(instance), "tilepass", text)

        changed: list[Pass] = []
        kernel = module.get_entry_func_name()
        try:
            result = bridge.run_passes(
                module,
                instances,
                make_context,
                after_pass if self.plan.observers else None,
                self._validate if self.plan.validator else None,
                changed.append,
            )
        except ParseError as error:
            raise AnchorError(
                f"pass '{passes[0].instance.name}': the IR engine cannot read the module at "
                f"'{passes[0].anchor}': {error}"
            ) from error
        if kernel and changed and not result.get_entry_func_name():
            raise self._lost_kernel(changed[-1], module)
        if changed:
            if not self.changed_by and not self.quiet:
                self.unchanged = stock_figures(self, module, rest)
            self.changed_by.extend(one for one in passes if one.instance in changed)
        return result

    def _lost_kernel(self, instance: Pass, before: Any) -> PassFailure:
        """A pass left no kernel, where Triton would crash."""
        context = self.context_of(instance)
        reason = "left no kernel: the module has no public tt.func any more"
        return PassFailure(Failure([instance], context, before.str(), reason).message)

    def _run_segments(self, manager: RecordingPassManager, module: ModuleStandIn, tag: str) -> None:
        self._run_from(-1, manager, self._places_in(manager), module, tag)

    def _run_from(
        self,
        place: int,
        manager: RecordingPassManager,
        places: Mapping[int, list[Placed]],
        module: ModuleStandIn,
        tag: str,
    ) -> Any:
        """Run what follows the Python passes at a place; returns the module."""
        cuts = set(places) | {len(manager.passes)}
        if self.plan.observers:
            cuts.update(range(len(manager.passes)))
        start = max(place, 0)
        for stop in sorted(cut for cut in cuts if cut > place):
            segment = manager.passes[start:stop]
            if segment:
                self._run_triton(manager, segment, module, tag)
            module.module = self.run_python(
                places.get(stop, []),
                module.module,
                lambda other, copy, stop=stop: other._at_end(
                    other._run_from(stop, manager, places, ModuleStandIn(copy), tag)
                ),
            )
            start = stop
        return module.module

    def _run_triton(
        self,
        manager: RecordingPassManager,
        segment: list[RecordedPass],
        module: ModuleStandIn,
        tag: str,
    ) -> None:
        if self.changed_by and not self.quiet:
            self._run_after_change(manager, segment, module, tag)
        else:
            # A trial's module has its own context.
            manager.build(segment, module.context).run(module.module, tag)
        if self.plan.observers:
            self._observe(segment[-1].text(manager.context), "triton", module.module.str)

    def _run_after_change(
        self,
        manager: RecordingPassManager,
        segment: list[RecordedPass],
        module: ModuleStandIn,
        tag: str,
    ) -> None:
        """Run Triton's passes on IR that a Python pass has rewritten: it may be to blame."""
        with bridge.capture_diagnostics() as captured:
            try:
                manager.build(segment).run(module.module, tag)
            except RuntimeError as error:
                instance = self.changed_by[-1].instance
                context = self.plan.make_context(instance, self.target, self.options)
                failure = TritonFailure(manager, segment, self.changed_by, context)
                raise PassFailure(failure.message(captured, error)) from error

    def _observe(self, text: str, origin: Origin, module_text: Callable[[], str]) -> None:
        for observer in self.plan.observers:
            observer.after_pass(self.current, self.index, text, origin, module_text)
        self.index += 1

    def _places_in(self, manager: RecordingPassManager) -> dict[int, list[Placed]]:
        if not self.places.need_passes:
            return {}
        names = [recorded.name(manager.context) for recorded in manager.passes]
        return self.places.among(self.current, names)

    def _is_instrumented(self, stage: str) -> bool:
        """Whether Proton or the like adds its own passes, which take a real manager."""
        if stage != LAST_STAGE:
            return False
        if getattr(self.backend, "instrumentation", None):
            return True
        callbacks: Any = getattr(sys.modules.get("triton._instrumentation"), "_callbacks", None)
        return bool(callbacks)


Rest = Callable[[Weaving, Any], Any]


def _artifact(value: Any) -> str | bytes:
    return value.str() if isinstance(value, _module_type) else value
