"""Finding passes: the built-in ones, those of installed packages, and those of files."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import inspect
import os
import pkgutil
import sys
from collections.abc import Mapping
from importlib.machinery import SourceFileLoader
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeGuard, TypeVar, cast

from tilepass import executed
from tilepass.core import tracebacks
from tilepass.core.digest import module_hash, tool_hash
from tilepass.core.errors import (
    OptionError,
    TilepassError,
    UnknownPassError,
    UnsupportedVersionError,
    nearest,
)
from tilepass.core.options import build_options, options_problem
from tilepass.core.pass_base import Anchor, Pass
from tilepass.core.pipeline_spec import PipelineItem, is_pass_name

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

ENTRY_POINT_GROUP = "tilepass.passes"
_PACKAGES = ("tilepass.passes.triton", "tilepass.passes.cute")
_PassClass = TypeVar("_PassClass", bound=type[Pass])

_registered: dict[str, type[Pass]] = {}
# What each loaded file registered, by its module's name.
_of_files: dict[str, dict[str, type[Pass]]] = {}
# What stands for the code of passes that are in no file.
_nameless: dict[type[Pass], str] = {}
_NOT_HASHED = ("tilepass", *sys.stdlib_module_names)


def register(pass_class: _PassClass) -> _PassClass:
    """Class decorator: make a pass known by its `name`.

    Raises TilepassError for a class that no pipeline could run.
    """
    _check_declaration(pass_class)
    _check_name_is_free(pass_class)
    _registered[pass_class.name] = pass_class
    return pass_class


def _check_declaration(pass_class: type[Pass]) -> None:
    if not _is_pass_class(pass_class):
        raise TilepassError(f"@register: {pass_class!r} is not a subclass of Pass")
    declared: Mapping[str, object] = {
        name: getattr(pass_class, name, None) for name in ("name", "anchor", "touches")
    }
    problem = options_problem(pass_class)
    if not is_pass_name(declared["name"]):
        problem = f"its name is {declared['name']!r}, expected a text like 'my-pass'"
    elif not isinstance(declared["anchor"], Anchor):
        problem = f"its anchor is {declared['anchor']!r}, expected an Anchor"
    elif not _are_names(declared["touches"]):
        problem = f"its touches are {declared['touches']!r}, expected a tuple of operation names"
    problem = problem or _run_problem(pass_class)
    if problem:
        raise TilepassError(f"pass class '{pass_class.__name__}': {problem}")


def _is_pass_class(value: object) -> TypeGuard[type[Pass]]:
    return isinstance(value, type) and issubclass(value, Pass)


def _are_names(touches: object) -> bool:
    entries = cast("tuple[object, ...]", touches) if isinstance(touches, tuple) else (None,)
    return all(isinstance(entry, str) for entry in entries)


def _run_problem(pass_class: type[Pass]) -> str | None:
    """What keeps `run` from being called."""
    if pass_class.__abstractmethods__:
        return "it has no method 'run(self, module, context)'"
    run: Any = pass_class.run
    wanted = "expected a method run(self, module, context)"
    try:
        inspect.signature(run).bind(None, None, None)
    except TypeError as error:
        return f"its run cannot be called with a module and a context ({error}); {wanted}"
    if inspect.iscoroutinefunction(run) or inspect.isgeneratorfunction(run):
        return f"its run is a coroutine or a generator; {wanted}"
    return None


def _check_name_is_free(pass_class: type[Pass]) -> None:
    """Two classes of one file must not have the same name; another file's is replaced."""
    other = _registered.get(pass_class.name)
    if other is None or other.__module__ != pass_class.__module__:
        return
    if other.__qualname__ != pass_class.__qualname__:
        raise TilepassError(
            f"pass class '{pass_class.__name__}': its name '{pass_class.name}' is that of class "
            f"'{other.__name__}' in the same file"
        )


def pass_names() -> list[str]:
    """Every name that `find_pass` knows; imports no pass."""
    return sorted({*_registered, *_builtin_modules(), *_entry_points()})


def is_at_hand(name: str) -> bool:
    """Whether a pass of this name is built in or loaded; installed packages are not searched."""
    return name in _registered or name in _builtin_modules()


def find_pass(name: str) -> type[Pass]:
    """The pass class of this name, imported on demand.

    Raises UnknownPassError with the nearest names, and TilepassError for an entry point that is in
    error.
    """
    if name not in _registered:
        if module := _builtin_modules().get(name):
            importlib.import_module(module)
        elif entry_point := _entry_points().get(name):
            _load_entry_point(entry_point)
    if name not in _registered:
        known = pass_names()
        raise UnknownPassError(f"unknown pass '{name}'{nearest(name, known)}")
    return _registered[name]


def never_used() -> list[str]:
    """What is wrong with entry points that no pipeline reaches: passes of tilepass's names."""
    return [
        f"{_shown(one)}: a pass of tilepass has this name, and is used"
        for one in _all_entry_points()
        if one.name in _builtin_modules()
    ]


def _shown(entry_point: EntryPoint) -> str:
    distribution = entry_point.dist.name if entry_point.dist else "a package"
    return f"entry point '{entry_point.name} = {entry_point.value}' of {distribution}"


def _load_entry_point(entry_point: EntryPoint) -> None:
    """Register what an entry point names: a pass class, or a module that registers the pass."""
    before = dict(_registered)
    try:
        loaded: object = entry_point.load()
        if _is_pass_class(loaded):
            register(loaded)
        problem = _entry_problem(entry_point, loaded)
    except (Exception, SystemExit) as error:
        _restore(before)
        told = _told(error, entry_point.module)
        raise TilepassError(f"{_shown(entry_point)}: {told}") from error
    if problem:
        _restore(before)
        raise TilepassError(f"{_shown(entry_point)}: {problem}")


def _restore(before: Mapping[str, type[Pass]]) -> None:
    """What an entry point in error has registered would be there the next time it is asked for."""
    _registered.clear()
    _registered.update(before)


def _entry_problem(entry_point: EntryPoint, loaded: object) -> str | None:
    name, value = entry_point.name, entry_point.value
    for other in _all_entry_points():
        if other.name == name and other.value != value:
            return f"it has the name of {_shown(other)}"
    if name in _registered:
        return None
    if _is_pass_class(loaded):
        return f"the pass is called '{loaded.name}', and so must this be"
    members: list[object] = list(vars(sys.modules[entry_point.module]).values())
    found = [one for one in members if _is_pass_class(one) and one.__module__ == entry_point.module]
    wanted = "expected a pass class (module:Class)"
    if found:
        of_module = ", ".join(f"{one.name} = {one.__module__}:{one.__qualname__}" for one in found)
        wanted = f"that module has {of_module}"
    kind: type[object] = type(loaded)
    return f"it names {kind.__name__} '{value}'; {wanted}"


def instantiate(item: PipelineItem) -> Pass:
    """The pass that a pipeline item asks for. Raises UnknownPassError or OptionError."""
    pass_class = find_pass(item.name)
    options = build_options(pass_class, item.options)
    try:
        made = pass_class(options)
        # With all options, which an `__init__` of its own may have forgotten.
        str(made)
    except TilepassError:
        raise
    except (Exception, SystemExit) as error:
        told = tracebacks.describe(error, pass_class.__module__)
        raise OptionError(f"pass '{item.name}' cannot be made: {told}") from error
    return made


def load_file(path: str | Path, *, quiet: bool = False) -> list[str]:
    """Import a Python file and return the names of the passes that it registered.

    A pass from elsewhere that has the same name is replaced, with a warning on stderr unless
    `quiet`. Raises TilepassError where the file cannot be read, raises, or registers no pass.
    """
    file = Path(path).resolve()
    if not file.is_file():
        what = "a folder, expected a file" if file.is_dir() else "no such file"
        raise TilepassError(f"--load {path}: {what}")
    source = file.read_bytes()
    name = f"tilepass_loaded_{file.stem}_{hashlib.sha256(source).hexdigest()[:12]}"
    before = dict(_registered)
    if name not in sys.modules:
        _execute(file, source, name, path)
        _of_files[name] = dict(set(_registered.items()) - set(before.items()))
    # An edited file that is back to an earlier text: its passes have been replaced since.
    _registered.update(_of_files[name])
    if not _of_files[name]:
        raise TilepassError(f"--load {path}: the file registers no pass (use @register)")
    for replaced in [] if quiet else _replaced(before, _of_files[name]):
        print(f"warning: {path}: replaces the pass '{replaced}'", file=sys.stderr)
    return sorted(_of_files[name])


def _replaced(before: Mapping[str, type[Pass]], loaded: Mapping[str, type[Pass]]) -> list[str]:
    """The names in `loaded` that another file's pass had; an edited file replaces its own."""
    installed = {name: entry.module for name, entry in _entry_points().items()}
    others = installed | _builtin_modules()
    others |= {name: pass_class.__module__ for name, pass_class in before.items()}
    return [
        name
        for name, pass_class in sorted(loaded.items())
        if name in others and _file_of(others[name]) != _file_of(pass_class.__module__)
    ]


def _file_of(module: str) -> str:
    """The file of a module that need not have been imported; its name where it has none."""
    file: str | None = getattr(sys.modules.get(module), "__file__", None)
    if module not in sys.modules:
        try:
            spec = importlib.util.find_spec(module)
        except ModuleNotFoundError:
            return module
        file = spec.origin if spec else None
    return str(Path(file).resolve()) if file else module


def source_hash(pass_class: type[Pass]) -> str:
    """Hash (hex) of the code of `pass_class` and all that it imports, as of `module_hash`.

    Of a pass of tilepass the hash of all of tilepass; one that is in no file is like no other.
    """
    names = {each.__module__ for each in pass_class.__mro__}
    outside = sorted(name for name in names if name.partition(".")[0] not in _NOT_HASHED)
    if any(getattr(sys.modules.get(name), "__file__", None) is None for name in outside):
        return _nameless.setdefault(pass_class, os.urandom(16).hex())
    return "".join(map(module_hash, outside)) or tool_hash()


def _execute(file: Path, source: bytes, name: str, shown: str | Path) -> None:
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or not isinstance(spec.loader, SourceFileLoader):
        raise TilepassError(f"--load {shown}: not a Python file")
    executed.promised[name] = (str(file), source)
    loader = spec.loader = executed.ExecutedLoader(name, str(file))
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        loader.exec_module(module)
    except (Exception, SystemExit) as error:
        told = _told(error, name)
        del sys.modules[name]
        raise TilepassError(f"--load {shown}: {told}") from error


def _told(error: BaseException, module: str) -> str:
    """What went wrong while a module was imported, and in which of its lines: not so where what is
    installed is too old, which is not a line's doing."""
    if isinstance(error, UnsupportedVersionError):
        return str(error)
    if isinstance(error, TilepassError):
        return f"{error} ({tracebacks.place(error, module)})"
    return tracebacks.describe(error, module)


def _builtin_modules() -> dict[str, str]:
    """Pass name -> module of the built-in passes; the file's name is the pass's name."""
    modules: dict[str, str] = {}
    for package in _PACKAGES:
        for entry in pkgutil.iter_modules(importlib.import_module(package).__path__):
            if not entry.name.startswith("_"):
                modules[entry.name.replace("_", "-")] = f"{package}.{entry.name}"
    return modules


def _entry_points() -> dict[str, EntryPoint]:
    return {entry.name: entry for entry in _all_entry_points()}


def _all_entry_points() -> tuple[EntryPoint, ...]:
    # Here and not above: importing it costs as much as starting the interpreter, twice over.
    from importlib.metadata import entry_points

    return tuple(entry_points(group=ENTRY_POINT_GROUP))
