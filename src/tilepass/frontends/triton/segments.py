"""One compilation by Triton with Python passes at their anchors and observers looking on.

The passes of a stage are recorded (see recording.py) and run in segments: those up to the first
place where a Python pass stands, that pass, those up to the next, and so on. With observers every
pass is a segment of its own.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, runtime_checkable

from triton._C import libtriton

from tilepass.core.anchor import EVERY
from tilepass.core.errors import AnchorError, ParseError, PassFailure, nearest
from tilepass.core.pass_base import Pass, PassContext, Target
from tilepass.frontends.placed import Placed
from tilepass.frontends.triton import bridge
from tilepass.frontends.triton.recording import (
    ModuleStandIn,
    RecordedPass,
    RecordingPassManager,
    Stage,
    is_stock,
    record_stage,
)
from tilepass.frontends.triton.triton_failure import TritonFailure
from tilepass.frontends.triton.versions import triton_version

Origin = Literal["triton", "tilepass"]
# The stages whose result is an MLIR module, and the one that starts from one. The latter's later
# passes work on LLVM operations, whose attributes differ between LLVM versions: the IR engine does
# not read them all, so EVERY means the passes of the former.
_MLIR_STAGES = ("ttir", "glir", "ttgir")
_LAST_STAGE = "llir"

_module_type: Any = libtriton.ir.module


@dataclass(frozen=True)
class Compilation:
    """What an observer is told about a compilation.

    `key` is the name of its folder in Triton's cache before Triton encodes it (a SHA-256).
    """

    key: str
    kernel: str
    language: str
    target: Target
    options: Mapping[str, object]


class StageObserver(Protocol):
    """Looks on while kernels are compiled.

    The calls about one compilation come from one thread, from `begin` to the last `after_stage`;
    other threads may compile at the same time. A text function must be called before the
    observer's method returns.
    """

    def begin(self, compilation: Compilation, source: Callable[[], str]) -> None:
        """A compilation starts from the IR that `source` prints."""

    def after_pass(
        self,
        stage: str,
        index: int,
        pass_text: str,
        origin: Origin,
        module_text: Callable[[], str],
    ) -> None:
        """A pass has run; `index` counts the passes of the compilation from 0."""

    def after_stage(self, stage: str, artifact: Callable[[], str | bytes]) -> None:
        """A stage is done; the artifact is text, or bytes for a binary."""


@runtime_checkable
class ContextObserver(Protocol):
    """An observer that also wants the remarks and decisions of each Python pass."""

    def before_pass(self, context: PassContext) -> None:
        """A Python pass is about to run with `context`; its `after_pass` comes from the same
        thread, and does not come if the pass fails."""


@dataclass(frozen=True)
class Plan:
    """What is to happen in every compilation.

    `skipped` is told of each pass that has no place in a compilation, and why.
    """

    passes: tuple[Placed, ...]
    observers: tuple[StageObserver, ...]
    make_context: Callable[[Pass, Target, Mapping[str, object]], PassContext]
    skipped: Callable[[Placed, str], None]


def instrument(
    plan: Plan, backend: Any, stages: dict[str, Stage], options: Any, language: Any
) -> None:
    """Replace the functions of a stage table so that `plan` is carried out.

    Raises AnchorError for a pass whose stage the table does not have.
    """
    target = Target(backend.target.backend, backend.target.arch, backend.target.warp_size)
    weaving = _Weaving(plan, backend, target, dict(options.__dict__), language.name.lower())
    weaving.check_stages(list(stages))
    for name, stage in stages.items():
        stages[name] = weaving.stage(name, stage)


@dataclass
class _Weaving:
    """The state of one compilation."""

    plan: Plan
    backend: Any
    target: Target
    options: Mapping[str, object]
    language: str
    current: str = ""
    begun: bool = False
    changed_by: list[Placed] = field(default_factory=list[Placed])
    # Triton's passes that ran, by stage: what an anchor can name.
    seen: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    # Stages whose passes cannot be seen.
    opaque: list[str] = field(default_factory=list[str])
    runs: Counter[str] = field(default_factory=lambda: Counter[str]())
    found: set[int] = field(default_factory=set[int])
    index: int = 0

    def check_stages(self, stages: Sequence[str]) -> None:
        """Find the passes at stages that do not exist or hold no MLIR."""
        starts = [name for name in stages if name in (*_MLIR_STAGES, _LAST_STAGE)]
        ends = [name for name in stages if name in _MLIR_STAGES]
        for number, placed in enumerate(self.plan.passes):
            anchor = placed.anchor
            known = {"start": starts, "end": ends}.get(anchor.position)
            if known is None:
                continue
            self.found.add(number)
            if anchor.where not in known:
                places = [f"start:{name}" for name in starts] + [f"end:{name}" for name in ends]
                self._missing(placed, f"the places at stages are {', '.join(places)}")

    def stage(self, name: str, stage: Stage) -> Stage:
        """The stage with passes at its start, in it, and at its end."""
        is_mlir = name in (*_MLIR_STAGES, _LAST_STAGE)
        if not is_mlir and not self.plan.observers:
            return stage
        records = is_mlir and is_stock(stage, self.backend) and not self._is_instrumented(name)
        body = record_stage(stage, self.backend, self._run_segments) if records else stage
        if is_mlir and not records and name != "glir":
            self.opaque.append(name)

        def run(source: Any, metadata: Any) -> Any:
            self.current = name
            self._begin(source, metadata)
            if is_mlir:
                self.seen[name] = []
                source = self._run_python(self._at("start", name), source)
            result = body(ModuleStandIn(source) if records else source, metadata)
            if isinstance(result, ModuleStandIn):
                result = result.module
            if name in _MLIR_STAGES:
                result = self._run_python(self._at("end", name), result)
            if name == _LAST_STAGE:
                self._check_passes()
            for observer in self.plan.observers:
                observer.after_stage(name, lambda: _artifact(result))
            return result

        return run

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

    def _at(self, position: str, name: str) -> list[Placed]:
        return [
            placed
            for placed in self.plan.passes
            if placed.anchor.position == position and placed.anchor.where == name
        ]

    def _run_python(self, passes: Sequence[Placed], module: Any) -> Any:
        if not passes:
            return module

        def make_context(instance: Pass) -> PassContext:
            context = self.plan.make_context(instance, self.target, self.options)
            for observer in self.plan.observers:
                if isinstance(observer, ContextObserver):
                    observer.before_pass(context)
            return context

        def after_pass(instance: Pass, text: Callable[[], str]) -> None:
            self._observe(str(instance), "tilepass", text)

        try:
            result = bridge.run_passes(
                module,
                [placed.instance for placed in passes],
                make_context,
                after_pass if self.plan.observers else None,
            )
        except ParseError as error:
            raise AnchorError(
                f"pass '{passes[0].instance.name}': the IR engine cannot read the module at "
                f"'{passes[0].anchor}': {error}"
            ) from error
        if result is not module:
            self.changed_by.extend(passes)
        return result

    def _run_segments(self, manager: RecordingPassManager, module: ModuleStandIn, tag: str) -> None:
        places = self._places(manager)
        cuts = set(places)
        if self.plan.observers:
            cuts.update(range(len(manager.passes) + 1))
        start = 0
        for stop in sorted(cuts | {len(manager.passes)}):
            segment = manager.passes[start:stop]
            if segment:
                self._run_triton(manager, segment, module, tag)
            module.module = self._run_python(places.get(stop, []), module.module)
            start = stop

    def _run_triton(
        self,
        manager: RecordingPassManager,
        segment: list[RecordedPass],
        module: ModuleStandIn,
        tag: str,
    ) -> None:
        if self.changed_by:
            self._run_after_change(manager, segment, module, tag)
        else:
            manager.build(segment).run(module.module, tag)
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

    def _places(self, manager: RecordingPassManager) -> dict[int, list[Placed]]:
        """Where in a manager's list Python passes stand: index of the pass that follows them."""
        wanted = [
            (number, placed)
            for number, placed in enumerate(self.plan.passes)
            if placed.anchor.position in ("before", "after")
        ]
        if not wanted:
            return {}
        places: dict[int, list[tuple[int, Placed]]] = {}
        for index, recorded in enumerate(manager.passes):
            name = recorded.name(manager.context)
            for number, placed in wanted:
                anchor = placed.anchor
                every = anchor.where == EVERY and self.current in _MLIR_STAGES
                if every or (anchor.where, anchor.occurrence) == (name, self.runs[name]):
                    place = index + (anchor.position == "after")
                    places.setdefault(place, []).append((number, placed))
                    self.found.add(number)
            self.runs[name] += 1
            self.seen[self.current].append(name)
        return {
            place: [placed for _, placed in sorted(found, key=lambda entry: entry[0])]
            for place, found in places.items()
        }

    def _check_passes(self) -> None:
        """After the last stage with MLIR passes: what has not been found is not there."""
        for number, placed in enumerate(self.plan.passes):
            if number not in self.found:
                runs = self.runs.get(placed.anchor.where, 0)
                hint = f"'{placed.anchor.where}' runs {runs} time(s); " if runs else ""
                self._missing(placed, hint + self._passes_seen(placed.anchor.where))

    def _passes_seen(self, wanted: str) -> str:
        stages = [
            f"\n  {stage}: {', '.join(_with_counts(names))}"
            for stage, names in self.seen.items()
            if names
        ]
        guess = "" if wanted in self.runs else nearest(wanted, self.runs).removeprefix("; ")
        hidden = "".join(
            f"\n  (stage '{stage}' has been replaced by another hook: its passes cannot be seen)"
            for stage in self.opaque
        )
        return f"{guess} the passes that run here are{''.join(stages)}{hidden}".strip()

    def _missing(self, placed: Placed, hint: str) -> None:
        where = f"{triton_version()} for {self.target} ({self.language})"
        reason = f"{where} has no place '{placed.anchor}'"
        # A Gluon kernel skips the stages that most passes are made for; that is no mistake.
        if placed.anchor.optional:
            return
        if self.language != "triton" or not self._started_at_the_beginning(placed):
            self.plan.skipped(placed, reason)
            return
        raise AnchorError(f"pass '{placed.instance.name}': {reason}; {hint}")

    def _started_at_the_beginning(self, placed: Placed) -> bool:
        """False where the compilation starts from an IR file: earlier stages do not run."""
        return placed.anchor.position in ("start", "end") or "ttir" in self.seen

    def _is_instrumented(self, stage: str) -> bool:
        """Whether Proton or the like adds passes of its own, which take a real manager."""
        if stage != _LAST_STAGE:
            return False
        if getattr(self.backend, "instrumentation", None):
            return True
        callbacks: Any = getattr(sys.modules.get("triton._instrumentation"), "_callbacks", None)
        return bool(callbacks)


def _with_counts(names: Sequence[str]) -> list[str]:
    counts = Counter(names)
    return [f"{name} (x{count})" if count > 1 else name for name, count in counts.items()]


def _artifact(value: Any) -> str | bytes:
    return value.str() if isinstance(value, _module_type) else value
