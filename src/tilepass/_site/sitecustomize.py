"""Activation where the start-up hook is not installed; then the user's own `sitecustomize`."""

import importlib
import os
import sys
from importlib.util import find_spec

_HERE = os.path.dirname(os.path.abspath(__file__))


def _start() -> None:
    """Import `tilepass._startup`, also in an interpreter that tilepass is not installed for."""
    root = os.path.dirname(os.path.dirname(_HERE))
    installed = find_spec("tilepass") is not None
    if not installed:
        sys.path.append(root)
    importlib.import_module("tilepass._startup")
    if not installed:
        sys.path.remove(root)


def _import_next() -> None:
    """Import the `sitecustomize` that this one hides, if there is one."""
    path, own = list(sys.path), sys.modules.pop(__name__)
    sys.path[:] = [folder for folder in path if os.path.abspath(folder) != _HERE]
    try:
        importlib.import_module(__name__)
    except ModuleNotFoundError as error:
        if error.name != __name__:
            raise
        sys.modules[__name__] = own
    finally:
        sys.path[:] = path


if os.environ.get("TILEPASS"):
    _start()
_import_next()
