"""Doing something when a program imports a module, without importing it oneself.

Loaded when interpreters start: it imports nothing that is not there already.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any


class AfterImport:
    """A finder that calls `action` once, after the first import of a module.

    It waits on `sys.meta_path` until then, because programs also look for the specs of modules
    that they do not import. The module must not have been imported yet.
    """

    def __init__(self, module: str, action: Callable[[], None]) -> None:
        self._module = module
        self._action = action
        self._searching = False
        sys.meta_path.insert(0, self)

    def cancel(self) -> None:
        """Do nothing when the module is imported."""
        if self in sys.meta_path:
            sys.meta_path.remove(self)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """As of importlib's finders; the spec is that of the finder whose turn it would be."""
        if fullname != self._module or self._searching:
            return None
        self._searching = True
        try:
            spec = _next_spec(self, fullname, path, target)
        finally:
            self._searching = False
        if spec is not None and spec.loader is not None:
            self._act_after(spec.loader)
        return spec

    def _act_after(self, loader: Any) -> None:
        execute = loader.exec_module

        def exec_module(module: ModuleType) -> None:
            loader.exec_module = execute
            execute(module)
            if self in sys.meta_path:
                self.cancel()
                self._action()

        loader.exec_module = exec_module


def _next_spec(
    asking: AfterImport, fullname: str, path: Sequence[str] | None, target: ModuleType | None
) -> ModuleSpec | None:
    """What the other finders find, asked in their order."""
    for finder in list(sys.meta_path):
        find_spec = getattr(finder, "find_spec", None)
        if finder is not asking and find_spec and (spec := find_spec(fullname, path, target)):
            return spec
    return None
