"""Activation by environment variables, in the interpreter that a program starts.

    TILEPASS          the pipeline; nothing happens where it is unset or empty
    TILEPASS_LOAD     files with passes, separated like PATH
    TILEPASS_REMARKS  the kinds of remarks that go to stderr, as of `--remarks` (default: missed)

Imported when the interpreter starts (by `tilepass_startup.pth` or, under `tilepass run`, by
`_site/sitecustomize.py`), so it loads neither a compiler nor the rest of tilepass: the pipeline is
put in force when the program imports triton. A pipeline that is in error ends the program then.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from importlib.abc import MetaPathFinder
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType, TracebackType

PIPELINE = "TILEPASS"
LOAD = "TILEPASS_LOAD"
REMARKS = "TILEPASS_REMARKS"
_FAILURE = 2


class _AtImport(MetaPathFinder):
    """Calls `activate` after the first import of triton.

    It stays until then: programs look for triton's spec without importing it.
    """

    _searching = False

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != "triton" or self._searching:
            return None
        self._searching = True
        try:
            spec = importlib.util.find_spec(fullname)
        finally:
            self._searching = False
        if spec is not None and spec.loader is not None:
            self._activate_after(spec.loader)
        return spec

    def _activate_after(self, loader: Any) -> None:
        execute = loader.exec_module

        def exec_module(module: ModuleType) -> None:
            del loader.exec_module
            execute(module)
            if self in sys.meta_path:
                sys.meta_path.remove(self)
                activate()

        loader.exec_module = exec_module


def activate() -> None:
    """Put the pipeline of the environment in force for the rest of the process.

    Any error ends the process: the program has been asked to run with these passes, and `import
    triton` is often inside a `try`.
    """
    try:
        _enable()
    except Exception as error:
        _stop(error)
    sys.excepthook = _without_traceback(sys.excepthook)


def _enable() -> None:
    try:
        from tilepass.activate import enabled
    except ModuleNotFoundError as error:
        if error.name != "tilepass":
            raise
        raise RuntimeError(f"tilepass is not installed for {sys.executable}") from error
    load = [path for path in os.environ.get(LOAD, "").split(os.pathsep) if path]
    remarks = os.environ.get(REMARKS, "missed")
    enabled(os.environ[PIPELINE], load=load, remarks=remarks).__enter__()


def _stop(error: Exception) -> None:
    if not _is_expected(error) and not isinstance(error, RuntimeError):
        sys.excepthook(type(error), error, error.__traceback__)
    print(f"error: {PIPELINE}: {error}", file=sys.stderr)
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    # SystemExit would end one thread alone, and a bare `except` would swallow it.
    os._exit(_FAILURE)


def _is_expected(error: BaseException) -> bool:
    errors = sys.modules.get("tilepass.core.errors")
    return errors is not None and isinstance(error, errors.TilepassError)


def _without_traceback(previous: Any) -> Any:
    """An exception hook that prints errors of passes and pipelines as commands do."""

    def excepthook(
        kind: type[BaseException], error: BaseException, trace: TracebackType | None
    ) -> None:
        if not _is_expected(error):
            previous(kind, error, trace)
            return
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
    """Wait for the import of triton; once per process."""
    if "triton" in sys.modules:
        activate()
    elif not any(isinstance(finder, _AtImport) for finder in sys.meta_path):
        sys.meta_path.insert(0, _AtImport())


if os.environ.get(PIPELINE):
    install()
