"""Digests of the code that takes part in a pass: tilepass's own, and all that the pass imports.

They are of the bytes that ran (see tilepass.executed). What is yet to be imported counts as its
file is now, and will be made from just these bytes.
"""

from __future__ import annotations

import ast
import hashlib
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib.machinery import PathFinder
from pathlib import Path
from types import ModuleType

from tilepass import executed

_OWN = "tilepass"
_PROCESS = os.urandom(8)
# What was made of the sources as of the number of reloads.
_known: dict[tuple[str, int], str] = {}


def tool_hash() -> str:
    """Hash (hex) of all of tilepass, the built-in passes included; taken once per process."""
    key = (_OWN, executed.reloads)
    if key not in _known:
        _known[key] = _hash(dict(_own_sources(os.path.dirname(executed.__file__), _OWN)))
    return _known[key]


def module_hash(name: str) -> str:
    """Hash (hex) of an imported module, of the files of its package, and of all that they import.

    Imports count wherever they are, in functions too. The standard library does not, nor tilepass;
    of an installed package its version does.
    """
    key = (name, executed.reloads)
    if key not in _known:
        package = sys.modules[name].__package__ or ""
        found = _Closure(package.partition(".")[0] or name)
        found.add([name, *_modules_of_package(name, package)])
        shown = {_relative(module, name, package): data for module, data in found.sources.items()}
        _known[key] = _hash(shown)
    return _known[key]


def unforeseen_hash() -> str:
    """Hash of the modules that passes imported where no key could foresee it; empty without."""
    return _hash(executed.unforeseen) if executed.unforeseen else ""


def _hash(sources: Mapping[str, bytes]) -> str:
    digest = hashlib.sha256()
    for name, data in sorted(sources.items()):
        digest.update(f"{name}\0{len(data)}\0".encode() + data)
    return digest.hexdigest()


def _relative(module: str, root: str, package: str) -> str:
    """The name from the pass's own module or package on: how these are called is of no account."""
    if module == root:
        return ""
    return module.removeprefix(package) if package else module


def _own_sources(folder: str, package: str) -> Iterator[tuple[str, bytes]]:
    """The sources below a folder of tilepass, by the names of their modules."""
    for entry in os.scandir(folder):
        if entry.name.endswith(".py"):
            stem = entry.name[:-3]
            name = package if stem == "__init__" else f"{package}.{stem}"
            yield name, _bytes_of(name, entry.path)
        elif "." not in entry.name and entry.name != "__pycache__" and entry.is_dir():
            yield from _own_sources(entry.path, f"{package}.{entry.name}")


def _bytes_of(name: str, file: str) -> bytes:
    """What a module was made from, or is going to be."""
    if name not in sys.modules:
        return executed.promised.setdefault(name, (file, executed.read(file)[0]))[1]
    if name in executed.ran:
        return executed.ran[name]
    data, status = executed.read(file)
    # It was imported unobserved; if it may have been edited since, nobody else has this key.
    return data if executed.is_older_than_process(status) else data + _PROCESS


def _modules_of_package(name: str, package: str) -> list[str]:
    """The modules in the innermost package that holds `name`, outer ones first."""
    file = getattr(sys.modules[name], "__file__", None)
    if not package or file is None:
        return []
    folder = Path(file).parent
    files = (each.relative_to(folder).with_suffix("") for each in folder.rglob("*.py"))
    parts = sorted(each.parts for each in files)
    return [".".join([package, *each]).removesuffix(".__init__") for each in parts]


class _Closure:
    """Modules and all that they import: source by name, or version for what is installed."""

    def __init__(self, top: str) -> None:
        self.sources: dict[str, bytes] = {}
        self._top = top
        self._seen: set[str] = set()

    def add(self, names: Iterable[str]) -> None:
        """Add modules by their full names, as far as there are any of that name."""
        todo = list(names)
        while todo:
            name = todo.pop()
            top = name.partition(".")[0]
            if name in self._seen or top == _OWN:
                continue
            self._seen.add(name)
            todo.extend(self._add(name, top))

    def _add(self, name: str, top: str) -> Iterator[str]:
        """Add one module; yields the names of those that it imports, and of its packages."""
        if file := _file_of(name):
            if executed.is_standard(file):
                return
            if executed.is_in_packages(file) and top != self._top:
                self.sources[top] = _installed_version(top, file)
                return
            self.sources[name] = _bytes_of(name, file)
            yield from _imported_by(self.sources[name], name, "__init__." in file)
        if "." in name:
            yield name.rpartition(".")[0]


def _file_of(name: str) -> str | None:
    """The file of a module, which is looked for without importing anything."""
    module = sys.modules.get(name)
    if module is not None:
        return getattr(module, "__file__", None)
    spec = PathFinder.find_spec(name, _path_of(name.rpartition(".")[0]))
    return spec.origin if spec and spec.has_location else None


def _path_of(package: str) -> list[str] | None:
    """Where the modules of a package are looked for; None for those in no package."""
    if not package:
        return None
    module: ModuleType | None = sys.modules.get(package)
    if module is not None:
        return list(getattr(module, "__path__", ()))
    spec = PathFinder.find_spec(package, _path_of(package.rpartition(".")[0]))
    return list(spec.submodule_search_locations or ()) if spec else []


@cache
def _imported_by(source: bytes, name: str, is_package: bool) -> tuple[str, ...]:
    """The names of what a module imports, and of what might be modules among them."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        # An extension module, or nothing that could be imported.
        return ()
    package = name if is_package else name.rpartition(".")[0]
    found: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            origin = _origin(node, package)
            found += [origin, *(f"{origin}.{each.name}" for each in node.names if each.name != "*")]
        elif isinstance(node, ast.Call) and (literal := _imported_by_call(node)):
            found.append(literal)
    return tuple(found)


def _origin(node: ast.ImportFrom, package: str) -> str:
    """The full name of the module that names are imported from."""
    for _ in range(node.level - 1):
        package = package.rpartition(".")[0]
    return ".".join(filter(None, (package if node.level else "", node.module)))


def _imported_by_call(node: ast.Call) -> str | None:
    """The name in `import_module("name")` or `__import__("name")`."""
    function, first = node.func, node.args[0] if node.args else None
    called = getattr(function, "attr", None) or getattr(function, "id", None)
    if called in ("import_module", "__import__") and isinstance(first, ast.Constant):
        return first.value if isinstance(first.value, str) else None
    return None


def _installed_version(top: str, file: str) -> bytes:
    """What tells one version of an installed package from another: the names of its metadata.

    Where these are not called like the package, those of all that is installed there count.
    """
    folder = Path(file)
    while folder.name not in ("site-packages", "dist-packages") and folder.parent != folder:
        folder = folder.parent
    listed = [name for name in os.listdir(folder) if name.endswith((".dist-info", ".egg-info"))]
    own = [name for name in listed if name.lower().startswith(f"{top.lower()}-")]
    return "\n".join(sorted(own or listed)).encode()
