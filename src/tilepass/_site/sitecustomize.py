"""Activation where the start-up hook is not installed; then the user's own `sitecustomize`."""

import importlib
import os
import sys
from importlib.util import find_spec, module_from_spec, spec_from_file_location

_HERE = os.path.dirname(os.path.abspath(__file__))


def _start() -> None:
    """Import `tilepass._startup`, by its path in an interpreter that does not have tilepass."""
    if find_spec("tilepass") is not None:
        importlib.import_module("tilepass._startup")
        return
    spec = spec_from_file_location(
        "tilepass_startup", os.path.join(os.path.dirname(_HERE), "_startup.py")
    )
    assert spec is not None
    assert spec.loader is not None
    spec.loader.exec_module(module_from_spec(spec))


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
