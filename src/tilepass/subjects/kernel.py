"""A `@triton.jit` function of a file as a subject, compiled for a signature that the user gives.

A signature lists the arguments that are no constants, in order or by name: `*bf16:16,*fp32,i32:16`,
`x=*bf16:16,n=i32`. A type is one of Triton's (`i32`, `fp16`, `*bf16`, `tensordesc<bf16[128,64]>`);
`:16` says that a pointer or number is divisible by 16, as a launch on torch's tensors finds it;
`None` is an argument that is not there.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

from tilepass.core.errors import TilepassError, nearest
from tilepass.core.files import execute_file
from tilepass.core.flags import settings_of
from tilepass.core.options import convert
from tilepass.core.pass_base import Target
from tilepass.frontends.triton.targets import gpu_target
from tilepass.without_gpu.program import standing_in

_TYPE = re.compile(r"None|\*?k?\*?(?:[iu](?:1|8|16|32|64)|fp\w+|bf16)|tensordesc<\w+\[[\d, ]+\].*>")


@dataclass(frozen=True)
class KernelSpec:
    """`file.py:function`, or `module:function`, with what a launch would find out."""

    spec: str
    signature: str
    constants: Mapping[str, str] = field(default_factory=dict[str, str])
    options: Mapping[str, str] = field(default_factory=dict[str, str])

    def compile(self, target: Target) -> Any:
        """Compile for the target, under the pipeline in force; returns Triton's CompiledKernel.

        Raises TilepassError for what does not fit the function, and where Triton cannot.
        """
        triton: Any = importlib.import_module("triton")
        with standing_in(target):
            function, defaults = self._function()
            source = self._source(function, defaults)
            tuned = {name: defaults[name] for name in _TUNED if name in defaults}
            options = {**tuned, **compile_options(target, self.options)}
            try:
                return triton.compile(source, target=gpu_target(target), options=options)
            except TilepassError:
                raise
            except Exception as error:
                raise TilepassError(
                    f"Triton cannot compile {self.spec}: {type(error).__name__}: {error}"
                ) from error

    def _function(self) -> tuple[Any, dict[str, Any]]:
        """The jitted function, and what its autotuner's first configuration sets."""
        place, _, name = self.spec.rpartition(":")
        module = load_module(place)
        found: Any = getattr(module, name, None)
        if found is None:
            raise TilepassError(f"{place} has no function '{name}'{nearest(name, dir(module))}")
        defaults: dict[str, Any] = {}
        jitted: Any = importlib.import_module("triton.runtime.jit").JITFunction
        while not isinstance(found, jitted):
            if not hasattr(found, "fn"):
                raise TilepassError(f"{self.spec} is not a @triton.jit function")
            for configuration in getattr(found, "configs", ())[:1]:
                defaults.update(configuration.all_kwargs())
            found = found.fn
        if found.is_gluon():
            raise TilepassError(f"{self.spec} is in Gluon: give a program that launches it")
        return found, defaults

    def _source(self, function: Any, defaults: Mapping[str, Any]) -> Any:
        compiler: Any = importlib.import_module("triton.compiler")
        names: list[str] = list(function.arg_names)
        constants = {
            **{name: value for name, value in defaults.items() if name in names},
            **{name: _constant(text) for name, text in self.constants.items()},
        }
        for name in constants:
            if name not in names:
                raise self._no_parameter(name, names)
        types = self._types(function, [name for name in names if name not in constants])
        absent = {name: None for name, (kind, _) in types.items() if kind == "None"}
        signature = {
            name: types[name][0] if name in types and name not in absent else "constexpr"
            for name in names
        }
        attributes = {
            (names.index(name),): [["tt.divisibility", 16]]
            for name, (_, aligned) in types.items()
            if aligned
        }
        return compiler.ASTSource(
            function, signature, constexprs={**absent, **constants}, attrs=attributes
        )

    def _types(self, function: Any, names: Sequence[str]) -> dict[str, tuple[str, bool]]:
        """Type and divisibility by 16 of the parameters that are not constants."""
        entries = split_outside_brackets(self.signature)
        named = [entry.partition("=") for entry in entries]
        if entries and all(equals for _, equals, _ in named):
            found = {name.strip(): text.strip() for name, _, text in named}
        else:
            wanted = [each for each in names if not _has_default(function, each)]
            if len(entries) not in (len(names), len(wanted)):
                raise self._error(
                    f"has {len(wanted)} parameters that are not constants, the signature "
                    f"{len(entries)} types",
                    names,
                )
            found = dict(zip(names if len(entries) == len(names) else wanted, entries, strict=True))
        for name in found:
            if name not in names:
                raise self._no_parameter(name, names)
        return {name: self._type(name, found.get(name), function) for name in names}

    def _type(self, name: str, text: str | None, function: Any) -> tuple[str, bool]:
        if text is None:
            default = function.signature.parameters[name].default
            if default is None:
                return "None", False
            raise self._error(f"needs a type or a constant for '{name}'", [name])
        kind, _, hint = text.partition(":")
        kind = kind.strip()
        if not _TYPE.fullmatch(kind) or hint.strip() not in ("", "16"):
            raise TilepassError(
                f"--signature: '{text}' of {self.spec}'s '{name}' is not a type such as i32, "
                "i32:16, *bf16:16, tensordesc<bf16[128,64]> or None"
            )
        return kind, bool(hint)

    def _no_parameter(self, name: str, names: Sequence[str]) -> TilepassError:
        known = f"(parameters: {', '.join(names)})"
        return TilepassError(f"{self.spec} has no parameter '{name}'{nearest(name, names)} {known}")

    def _error(self, problem: str, names: Sequence[str]) -> TilepassError:
        return TilepassError(f"{self.spec} {problem}: {', '.join(names)}")


def kernel_spec(spec: str, options: Any, settings: Mapping[str, str] | None = None) -> KernelSpec:
    """What the flags of `add_kernel_flags` say, and options of `--config`. Raises OptionError."""
    given = dict(settings or {})
    for name in ("num_warps", "num_stages"):
        if (value := getattr(options, name)) is not None:
            given[name] = value
    constants = settings_of(options.constexpr, "--constexpr {}: expected NAME=VALUE")
    return KernelSpec(spec, options.signature, constants, given)


_TUNED = ("num_warps", "num_stages", "num_ctas", "maxnreg")


def is_spec(what: str) -> bool:
    """Whether `what` names an object of a module: `file.py:name`, `package.module:name`."""
    module, colon, name = what.rpartition(":")
    return bool(colon) and name.isidentifier() and bool(module)


def load_module(place: str) -> ModuleType:
    """The module of a Python file, or of a dotted name. Raises TilepassError."""
    if place.endswith(".py"):
        path = Path(place)
        return execute_file(path, path.stem, place, path.parent.resolve())
    try:
        return importlib.import_module(place)
    except ImportError as error:
        raise TilepassError(f"{place}: {error}") from error


def load_function(spec: str, what: str = "") -> Callable[..., Any]:
    """The function, or other object that can be called, that a spec names. Raises TilepassError,
    about `what`."""
    place, _, name = spec.rpartition(":")
    module = load_module(place)
    function = getattr(module, name, None)
    if not callable(function):
        about = what or place
        raise TilepassError(f"{about} has no function '{name}'{nearest(name, dir(module))}")
    return function


def compile_options(target: Target, settings: Mapping[str, str]) -> dict[str, Any]:
    """Triton's compile options from text, of the types of their defaults. Raises TilepassError."""
    compiler: Any = importlib.import_module("triton.compiler.compiler")
    try:
        parsed: Any = compiler.make_backend(gpu_target(target)).parse_options({})
    except (ValueError, AssertionError) as error:
        raise TilepassError(f"Triton cannot compile for {target}: {error}") from error
    defaults: dict[str, Any] = parsed.__dict__
    options: dict[str, Any] = {}
    for name, text in settings.items():
        if name not in defaults:
            raise TilepassError(
                f"--config {name}={text}: {target} has no compile option '{name}'"
                f"{nearest(name, defaults)}"
            )
        default = defaults[name]
        kind = bool if isinstance(default, bool) else str if isinstance(default, str) else int
        try:
            options[name] = convert(text, kind)
        except ValueError as error:
            raise TilepassError(f"--config {name}={text}: {error}") from error
    return options


def split_outside_brackets(text: str) -> list[str]:
    """The parts of a list between commas that stand in no brackets, without blanks around them."""
    parts, depth = [""], 0
    for character in text:
        depth += (character in "<[(") - (character in ">])")
        if character == "," and not depth:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts if part.strip()]


def _has_default(function: Any, name: str) -> bool:
    return function.signature.parameters[name].default is not inspect.Parameter.empty


def _constant(text: str) -> Any:
    """A value of Python, a type of `triton.language` (`tl.float16`), or else the text."""
    if match := re.fullmatch(r"tl\.(\w+)", text):
        found = getattr(importlib.import_module("triton.language"), match[1], None)
        if found is None:
            raise TilepassError(f"--constexpr: triton.language has no '{match[1]}'")
        return found
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text
