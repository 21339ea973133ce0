"""Activation by environment variables, in the interpreter that a program starts.

    TILEPASS          the pipeline; nothing happens where it is unset or empty
    TILEPASS_LOAD     files with passes, separated like PATH
    TILEPASS_REMARKS  the kinds of remarks that go to stderr, as of `--remarks` (default: missed)
    TILEPASS_VALIDATE 1: execute what passes rewrote, as of `--validate` (0 or unset: do not)
    TILEPASS_VALIDATE_SHAPES  sizes for that, which they imply; separated by `;`
    TILEPASS_ON_FAILURE  skip: a pass that fails is left out of the kernel (default: stop)
    TILEPASS_COMPILE_ONLY  a target (cuda:90): the program finds such a GPU, and its kernels are
                      compiled and not run; `cuda:90 all`: autotuners compile every configuration
    TILEPASS_DUMP     what `tilepass dump-ir` wants recorded (see dump.environment)
    TILEPASS_TRACEBACK  1: errors of passes come with their traceback

Imported when the interpreter starts (by `tilepass_startup.pth` or, under `tilepass run`, by
`_site/sitecustomize.py`), so it loads neither a compiler nor the rest of tilepass: the pipeline is
put in force when the program imports triton or the CuTe DSL, whichever comes first. A pipeline that
is in error ends the program then.
The variables count as they are at the start: programs clear their environment, or change folders.
"""

from __future__ import annotations

import os
import sys

from tilepass.after_import import AfterImport
from tilepass.variables import (
    COMPILE_ONLY,
    DUMP,
    LOAD,
    ON_FAILURE,
    PIPELINE,
    REMARKS,
    SHAPES_SEPARATOR,
    VALIDATE,
    VALIDATE_SHAPES,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Any

    from tilepass.frontends.observing import StageObserver

_FAILURE = 2
# The second is what programs that use the CuTe DSL import of `cutlass`. Tilepass itself imports
# the bindings, and that part alone.
_COMPILERS = ("triton", "cutlass.cute")

_pipeline = os.environ.get(PIPELINE, "")
_load = [os.path.abspath(path) for path in os.environ.get(LOAD, "").split(os.pathsep) if path]
_remarks = os.environ.get(REMARKS, "missed")
_validate = os.environ.get(VALIDATE, "")
_shapes = [text for text in os.environ.get(VALIDATE_SHAPES, "").split(SHAPES_SEPARATOR) if text]
_on_failure = os.environ.get(ON_FAILURE, "") or "stop"
_dump = os.environ.get(DUMP, "")
_compile_only = os.environ.get(COMPILE_ONLY, "")
_waiting: list[AfterImport] = []


def activate() -> None:
    """Put the pipeline of the environment in force for the rest of the process.

    Any error ends the process: the program has been asked to run with these passes, and `import
    triton` is often inside a `try`.
    """
    while _waiting:
        _waiting.pop().cancel()
    try:
        _enable()
    except Exception as error:
        _stop(error)
    sys.excepthook = _without_traceback(sys.excepthook)


def _enable() -> None:
    from tilepass.activate import enabled

    activation = enabled(
        _pipeline,
        observers=_observers(),
        load=_load,
        remarks=_remarks,
        validate=_is_on(VALIDATE, _validate),
        validate_shapes=_shapes,
        on_failure=_on_failure,
    )
    activation.enter(of_environment=True)
    _attribute_crashes()


def _attribute_crashes() -> None:
    """Let the stack of a crash in a pass go to stderr: the program has no supervisor."""
    from tilepass.core.underway import attribute_crashes

    try:
        attribute_crashes(os.dup(2))
    except OSError:
        # A daemon's stderr is closed.
        return


def _is_on(variable: str, value: str) -> bool:
    if value not in ("", "0", "1"):
        from tilepass.core.errors import OptionError

        raise OptionError(f"{variable} is '{value}': expected 1 or 0")
    return value == "1"


def _observers() -> list[StageObserver]:
    if not _dump:
        return []
    from tilepass.dump.environment import recorder_of_environment

    return [recorder_of_environment(DUMP, _dump, _pipeline)]


def _stop(error: Exception) -> None:
    """Say what is wrong, as far as the streams are there, and end the process."""
    try:
        if not _is_expected(error) or _is_traceback_wanted():
            sys.excepthook(type(error), error, error.__traceback__)
        if sys.stderr:
            print(f"error: {PIPELINE}: {error}", file=sys.stderr)
        for stream in filter(None, (sys.stdout, sys.stderr)):
            stream.flush()
    finally:
        # SystemExit would end one thread alone, and a bare `except` would swallow it.
        os._exit(_FAILURE)


def _is_expected(error: BaseException) -> bool:
    errors = sys.modules.get("tilepass.core.errors")
    return errors is not None and isinstance(error, errors.TilepassError)


def _is_traceback_wanted() -> bool:
    from tilepass.core.tracebacks import is_wanted

    return is_wanted()


def _without_traceback(previous: Any) -> Any:
    """An exception hook that prints errors of passes and pipelines as commands do."""

    def excepthook(
        kind: type[BaseException], error: BaseException, trace: TracebackType | None
    ) -> None:
        if not _is_expected(error):
            previous(kind, error, trace)
            return
        if _is_traceback_wanted():
            previous(kind, error, trace)
        print(f"error: {error}", file=sys.stderr)
        if (place := _place_in_program(trace)) is not None:
            print(f"note: raised from {place}", file=sys.stderr)

    return excepthook


def _place_in_program(trace: TracebackType | None) -> str | None:
    """The innermost line of the program itself: not of tilepass, nor of an installed package."""
    import traceback

    own = os.path.dirname(os.path.abspath(__file__))
    for frame in reversed(traceback.extract_tb(trace)):
        installed = f"{os.sep}site-packages{os.sep}" in frame.filename
        if not installed and not frame.filename.startswith(own):
            return f"{frame.filename}:{frame.lineno}, in {frame.name}"
    return None


def install() -> None:
    """Wait for the import of a compiler; called once, when this module is imported."""
    if any(compiler in sys.modules for compiler in _COMPILERS):
        activate()
    else:
        _waiting.extend(AfterImport(compiler, activate) for compiler in _COMPILERS)


def _stand_in_for_gpu() -> None:
    """When the program imports torch or Triton, let it find a GPU."""
    for module in ("torch", "triton"):
        if module in sys.modules:
            _stand_in_for(module)
        else:
            AfterImport(module, lambda module=module: _stand_in_for(module))


def _stand_in_for(module: str) -> None:
    try:
        from tilepass.core.pass_base import Target
        from tilepass.without_gpu.program import STAND_INS

        target, _, configurations = _compile_only.partition(" ")
        STAND_INS[module](Target.parse(target, COMPILE_ONLY), configurations == "all")
    except Exception as error:
        _stop(error)


if _pipeline:
    install()
    if _compile_only:
        _stand_in_for_gpu()
