"""Compiling what `dump-ir` was given: a kernel of tilepass, or a file of IR."""

from __future__ import annotations

import importlib
import sys
import tempfile
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tilepass.activate import enabled
from tilepass.core.errors import TilepassError
from tilepass.core.pass_base import Pass, PassContext, Placed, Target
from tilepass.dump.kernel_files import Said
from tilepass.dump.recorder import PassRun, Recorder
from tilepass.dump.store import write_file
from tilepass.frontends.contexts import make_context
from tilepass.frontends.cute.lowering import chip_of
from tilepass.frontends.placed import place_passes
from tilepass.frontends.triton.targets import gpu_target, target_of
from tilepass.opt.contexts import target_of_module
from tilepass.opt.source import Part, read_source
from tilepass.opt.work import is_cute
from tilepass.subjects.anew import compiled_anew
from tilepass.subjects.kernel import KernelSpec, compile_options

IR_SUFFIXES = (".ttir", ".ttgir")
_CUTE_SUFFIX = ".mlir"


def compile_workload(
    name: str,
    target: Target,
    settings: Mapping[str, str],
    pipeline: str,
    load: Sequence[str],
    recorder: Recorder,
) -> None:
    """Compile a kernel of tilepass for `target`; `settings` replace fields of its configuration.

    Raises TilepassError for an unknown kernel or setting, and what enabling and compiling raise.
    """
    from tilepass.kernels import get_workload
    from tilepass.kernels.cute_workload import get_cute_workload, is_cute_workload

    if is_cute_workload(name):
        cute_workload = get_cute_workload(name)
        chosen = cute_workload.configure(cute_workload.default_config, settings)
        with _compiling(name), enabled(pipeline, observers=[recorder], load=load):
            cute_workload.compile(chosen, chip_of(target))
        return
    workload = get_workload(name)
    config = workload.configure(workload.default_config, settings)
    with _compiling(name), enabled(pipeline, observers=[recorder], load=load):
        workload.compile(config, gpu_target(target))


def compile_kernel(
    kernel: KernelSpec, target: Target, pipeline: str, load: Sequence[str], recorder: Recorder
) -> None:
    """Compile a jitted function of the user's. Raises TilepassError."""
    with _compiling(kernel.spec), enabled(pipeline, observers=[recorder], load=load):
        kernel.compile(target)


def default_target() -> Target:
    """The GPU that is there; without one, sm_90, which is said."""
    runtime: Any = importlib.import_module("triton.runtime")
    try:
        found = runtime.driver.active.get_current_target()
    except RuntimeError:
        print("no GPU here: compiling for cuda:90 (see --target)", file=sys.stderr)
        return Target("cuda", 90)
    return target_of(found)


def compile_file(
    path: Path,
    target: Target | None,
    settings: Mapping[str, str],
    pipeline: str,
    load: Sequence[str],
    recorder: Recorder,
) -> None:
    """Compile a .ttir or .ttgir file from the stage after its own.

    Passes at the start or the end of the file's own stage run on it first. `target` may be None
    where the module names one; `settings` are Triton's compile options. A .mlir file holds a module
    that the CuTe DSL traced. Raises TilepassError, with the place in the file where it does not
    parse.
    """
    if path.suffix == _CUTE_SUFFIX:
        _compile_cute(read_source(str(path)), target, settings, pipeline, load, recorder)
        return
    from tilepass.frontends.triton import bridge

    source = _read(path)
    stage = path.suffix.removeprefix(".")
    module = bridge.load(source.text, source.file)
    if not _entry(module):
        raise TilepassError(f"{path}: there is no kernel in it (a public tt.func)")
    target = target or _target_of(source)
    options = compile_options(target, _with_warps(settings, module, source))
    first, rest = _split(place_passes(pipeline, load), stage)
    if first:
        module = _run_first(module, first, target, stage, recorder)
        if not _entry(module):
            names = ", ".join(placed.instance.name for placed in first)
            raise TilepassError(f"{path}: {names} left no kernel: there is no public tt.func")
    with tempfile.TemporaryDirectory(prefix="tilepass-") as folder:
        copy = Path(folder, path.name)
        write_file(copy, module.str())
        with _compiling(str(path)), enabled(",".join(map(str, rest)), observers=[recorder]):
            _triton().compile(str(copy), target=gpu_target(target), options=options)


def _compile_cute(
    source: Part,
    target: Target | None,
    settings: Mapping[str, str],
    pipeline: str,
    load: Sequence[str],
    recorder: Recorder,
) -> None:
    if not is_cute(source.text):
        raise TilepassError(
            f"{source.file}: a {_CUTE_SUFFIX} file must hold a CuTe module; Triton's IR goes into "
            f"{' or '.join(IR_SUFFIXES)} files"
        )
    if settings:
        raise TilepassError(f"--config {next(iter(settings))}: CuTe modules take no options")
    from tilepass.dump.cute_sources import compile_cute_file

    compile_cute_file(source, target or _target_of(source), pipeline, load, recorder)


def _read(path: Path) -> Part:
    if path.suffix not in IR_SUFFIXES:
        expected = f"{', '.join(IR_SUFFIXES)} or {_CUTE_SUFFIX}"
        raise TilepassError(f"{path}: expected a file named {expected}")
    return read_source(str(path))


def _entry(module: Any) -> str:
    """The name of the kernel; empty without one, where Triton would crash."""
    return module.get_entry_func_name()


def _with_warps(settings: Mapping[str, str], module: Any, source: Part) -> Mapping[str, str]:
    """The settings with the file's number of warps; that of a TTIR file without one is said."""
    count = module.get_int_attr("ttg.num-warps")
    if "num_warps" in settings:
        return settings
    if count is not None:
        return {**settings, "num_warps": str(count)}
    if source.file.endswith(".ttgir"):
        raise TilepassError(f"{source.file}: the module names no number of warps (ttg.num-warps)")
    print(
        f"note: {source.file} names no number of warps: 4 are assumed (--num-warps N)",
        file=sys.stderr,
    )
    return settings


def _target_of(source: Part) -> Target:
    found = target_of_module(source)
    if found is None:
        raise TilepassError(f"{source.file}: the module names no target: give --target (cuda:90)")
    return found


def _split(passes: Sequence[Placed], stage: str) -> tuple[list[Placed], list[Placed]]:
    """Passes that belong to the stage of the file itself, which does not run, and the others."""
    first = [
        placed
        for placed in passes
        if placed.anchor.where == stage and placed.anchor.position in ("start", "end")
    ]
    return first, [placed for placed in passes if placed not in first]


def _run_first(
    module: Any, passes: Sequence[Placed], target: Target, stage: str, recorder: Recorder
) -> Any:
    """The module after passes on the file itself, which the recorder is told of."""
    from tilepass.core.versions import triton_version
    from tilepass.frontends.triton import bridge

    contexts: list[PassContext] = []
    runs: list[PassRun] = []
    source: str = module.str()

    def context_of(instance: Pass) -> PassContext:
        contexts.append(make_context(instance.name, triton_version(), target))
        return contexts[-1]

    def after_pass(instance: Pass, text: Any) -> None:
        runs.append(PassRun(stage, str(instance), text(), Said.in_context(contexts[-1])))

    instances = [placed.instance for placed in passes]
    result = bridge.run_passes(module, instances, context_of, after_pass)
    recorder.begin_with(source, runs)
    return result


@contextmanager
def _compiling(what: str) -> Generator[None]:
    """Compile even where Triton's cache has the answer; errors of Triton become TilepassErrors."""
    with compiled_anew():
        try:
            yield
        except TilepassError:
            raise
        except Exception as error:
            raise TilepassError(
                f"Triton cannot compile {what}: {type(error).__name__}: {error}"
            ) from error


def _triton() -> Any:
    return importlib.import_module("triton")
