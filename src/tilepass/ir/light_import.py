"""Importing a subpackage without running the `__init__` of the package around it."""

from __future__ import annotations

import importlib.util
import sys
import types
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from importlib.machinery import ModuleSpec
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    # At run time this module would bring importlib.resources along, 40 ms of every start.
    from importlib.abc import Loader


@contextmanager
def without_package_init(package: str) -> Generator[None]:
    """Let `import package.sub` inside the block leave `package` itself unexecuted.

    The bindings load in 0.1 s, the DSL that their package's `__init__` brings along in 1 s. A later
    `import package` runs that `__init__`, in the module object that the subpackages already hang
    on, so that there is one copy of everything. No effect where `package` is imported already.
    Raises ModuleNotFoundError where `package` is not installed.
    """
    if package in sys.modules:
        yield
        return
    spec = importlib.util.find_spec(package)
    if spec is None or spec.submodule_search_locations is None:
        raise ModuleNotFoundError(f"No module named {package!r}", name=package)
    placeholder = types.ModuleType(package)
    placeholder.__path__ = list(spec.submodule_search_locations)
    placeholder.__spec__ = spec
    sys.modules[package] = placeholder
    try:
        yield
    finally:
        _freeze_namespace_paths(package)
        del sys.modules[package]
        sys.meta_path.insert(0, _IntoPlaceholder(placeholder))


def _freeze_namespace_paths(package: str) -> None:
    """Give namespace packages below `package` a path that stands alone.

    Theirs is recomputed from the parent's at every import of a submodule, and the parent is about
    to leave `sys.modules`. The bindings import a module per dialect when they meet its operations.
    """
    for name, module in list(sys.modules.items()):
        if name.startswith(f"{package}.") and hasattr(module, "__path__"):
            module.__path__ = list(module.__path__)


class _IntoPlaceholder:
    """Finds one package, once: the real one, to be executed in the placeholder."""

    def __init__(self, placeholder: types.ModuleType) -> None:
        self._placeholder = placeholder

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None = None,
        target: types.ModuleType | None = None,
    ) -> ModuleSpec | None:
        """The package's spec with a loader that reuses the placeholder, None for other modules."""
        if fullname != self._placeholder.__name__:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(fullname)
        if spec is not None and spec.loader is not None:
            spec.loader = cast("Loader", _Reusing(spec.loader, self._placeholder))
        return spec


class _Reusing:
    """A loader that executes into a module made before."""

    def __init__(self, loader: Loader, module: types.ModuleType) -> None:
        self._loader = loader
        self._module = module

    def create_module(self, spec: ModuleSpec) -> types.ModuleType:
        """The module made before."""
        return self._module

    def exec_module(self, module: types.ModuleType) -> None:
        """Run the package's `__init__`."""
        self._loader.exec_module(module)

    def __getattr__(self, name: str) -> object:
        """All else (get_source, get_filename, ...) as the package's own loader has it."""
        return getattr(self._loader, name)
