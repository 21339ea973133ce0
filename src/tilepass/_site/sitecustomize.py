"""Activation where the start-up hook is not installed; then the user's own `sitecustomize`."""

import os
import sys

_HERE = os.path.dirname(os.path.abspath(__file__))


def _start() -> None:
    """Import `tilepass._startup`, also in an interpreter that tilepass is not installed for."""
    path = list(sys.path)
    sys.path.append(os.path.dirname(os.path.dirname(_HERE)))
    try:
        __import__("tilepass._startup")
    except SyntaxError:
        # Too old an interpreter for this code is too old for any Triton that tilepass supports.
        return
    finally:
        sys.path[:] = path


def _import_next() -> None:
    """Import the `sitecustomize` that this one hides, if there is one."""
    path, own = list(sys.path), sys.modules.pop(__name__)
    sys.path[:] = [folder for folder in path if os.path.abspath(folder) != _HERE]
    try:
        __import__(__name__)
    except ModuleNotFoundError as error:
        if error.name != __name__:
            raise
        sys.modules[__name__] = own
    finally:
        sys.path[:] = path


if os.environ.get("TILEPASS"):
    _start()
_import_next()
