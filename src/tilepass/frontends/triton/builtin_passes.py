"""Triton's own passes by their MLIR names, found by trying the functions that add them.

libtriton exposes one `add_*` function per pass and no pass registry. Added to an empty manager,
each function shows the pass's textual name and options; which argument drives which option is
found by changing one argument at a time. All of it takes about 5 ms.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType, ModuleType
from typing import Any, Literal

from triton._C import libtriton

from tilepass.core.errors import OptionError, nearest
from tilepass.core.options import convert
from tilepass.core.pass_base import Target
from tilepass.frontends.triton.modules import new_context

OptionType = Literal["bool", "int", "str"]
_TYPES: Mapping[OptionType, type] = {"bool": bool, "int": int, "str": str}
Adder = Callable[..., Any]

_ARGUMENT = re.compile(r"[(, ]\w+: ((?:[^,()\[\]]|\[[^\]]*\])+)")
# `any(NAME{OPTIONS})`, or with a nested manager's operation around it `any(tt.func(NAME))`.
_PIPELINE = re.compile(r"any\((?:[\w.]+\()*([\w.-]+)(?:\{(.*)\})?\)+$", re.DOTALL)
_OPTION = re.compile(r"([\w-]+)=(\{[^}]*\}|\S*)")
_PROBES: Mapping[OptionType, tuple[Any, Any]] = {
    "bool": (False, True),
    "int": (3, 5),
    "str": ("cuda:90", "cuda:80"),
}
# The values that the passes' own definitions (Passes.td of Triton 3.6) give these options.
_DEFAULTS: Mapping[str, str] = {
    "hoist-layout-conversion": "true",
    "kPack": "1",
    "lds-limit": "0",
    "matrix-instruction-size": "0",
    "minimum-size": "0",
    "num-ctas": "1",
    "num-stages": "3",
    "num-warps": "4",
    "num_stages": "2",
    "ptx-version": "86",
    "threads-per-warp": "32",
    "variant": "none",
}
_ARCHITECTURE_OPTIONS = ("arch", "arch-generation-name", "gfx-arch", "target-arch")


@dataclass(frozen=True)
class BuiltinOption:
    """An option of one of Triton's passes.

    `default` is None where the target decides and no target is known. An option that no argument
    of the adding function drives is not `settable`: it always has its default.
    """

    name: str
    type: OptionType
    default: str | None
    settable: bool = True


@dataclass(frozen=True)
class BuiltinPass:
    """One of Triton's passes: `adder` names the libtriton function, `arguments` its parameters.

    An argument is the name of the option that it drives, or None for one that drives none.
    """

    name: str
    adder: str
    options: tuple[BuiltinOption, ...]
    arguments: tuple[tuple[OptionType, str | None], ...]
    function: Adder

    def add(
        self, pass_manager: Any, options: Mapping[str, str], target: Target | None = None
    ) -> None:
        """Add the pass to a libtriton pass manager.

        Options that are not given take their default or, where the architecture is asked for, a
        value from `target`. Raises OptionError.
        """
        self._check_names(options)
        values = [
            self._value(name, kind, self._text(name, kind, options, target))
            for kind, name in self.arguments
        ]
        self.function(pass_manager, *values)

    def _value(self, option: str | None, kind: OptionType, text: str) -> Any:
        try:
            return convert(text, _TYPES[kind])
        except ValueError as error:
            raise OptionError(f"pass '{self.name}', option '{option}': {error}") from error

    def _check_names(self, options: Mapping[str, str]) -> None:
        known = {option.name: option for option in self.options}
        for name, text in options.items():
            if name not in known:
                raise OptionError(
                    f"pass '{self.name}' has no option '{name}'{nearest(name, known)} "
                    f"(options: {', '.join(known) or 'none'})"
                )
            if not known[name].settable and text != known[name].default:
                raise OptionError(
                    f"pass '{self.name}', option '{name}': Triton's Python bindings fix it "
                    f"at '{known[name].default}'"
                )

    def _text(
        self,
        name: str | None,
        kind: OptionType,
        options: Mapping[str, str],
        target: Target | None,
    ) -> str:
        if name is None:
            return str(_PROBES[kind][0]).lower()
        if name in options:
            return options[name]
        default = _of_target(name, target) or next(
            option.default for option in self.options if option.name == name
        )
        if default is None:
            raise OptionError(
                f"pass '{self.name}' needs its option '{name}', or a target to take it from "
                "(--target cuda:90)"
            )
        return default


@functools.cache
def discover() -> Mapping[str, BuiltinPass]:
    """Triton's passes by textual name, in the order of their names."""
    context = new_context()
    found: dict[str, BuiltinPass] = {}
    for path, adder in _adders():
        if (candidate := _probe(path, adder, context)) is not None:
            found.setdefault(candidate.name, candidate)
    return MappingProxyType(dict(sorted(found.items())))


def pass_text(adder: Adder, arguments: Sequence[Any], context: Any) -> str:
    """`NAME{OPTIONS}` of the pass that `adder(manager, *arguments)` adds."""
    name, options = _describe(adder, arguments, context)
    spelled = " ".join(f"{key}={value}" for key, value in options.items() if value)
    return f"{name}{{{spelled}}}" if spelled else name


_names: dict[Adder, str] = {}


def pass_name(adder: Adder, arguments: Sequence[Any], context: Any) -> str:
    """The textual name of the pass that `adder` adds; remembered, it hangs on no argument."""
    if (known := _names.get(adder)) is None:
        known = _names[adder] = _describe(adder, arguments, context)[0]
    return known


def _describe(
    adder: Adder, arguments: Sequence[Any], context: Any
) -> tuple[str, Mapping[str, str]]:
    manager = libtriton.ir.pass_manager(context)
    adder(manager, *arguments)
    text: str = manager.get_pipeline_str().strip()
    match = _PIPELINE.match(text)
    if match is None:
        raise RuntimeError(f"libtriton describes a pass as '{text}', which is not understood")
    return match[1], dict(_OPTION.findall(match[2] or ""))


def _backends() -> Mapping[str, Any]:
    """The backends compiled into libtriton: `nvidia`, `amd`."""
    return {
        name: getattr(libtriton, name) for name in ("nvidia", "amd") if hasattr(libtriton, name)
    }


def _adders() -> Iterator[tuple[str, Adder]]:
    yield from _functions(libtriton.passes, "passes")
    for name, backend in _backends().items():
        yield from _functions(backend.passes, f"{name}.passes")


def _functions(module: ModuleType, path: str) -> Iterator[tuple[str, Adder]]:
    for name in sorted(vars(module)):
        member = getattr(module, name)
        if isinstance(member, ModuleType):
            yield from _functions(member, f"{path}.{name}")
        elif callable(member) and not isinstance(member, type) and not name.startswith("_"):
            yield f"{path}.{name}", member


def _probe(path: str, adder: Adder, context: Any) -> BuiltinPass | None:
    """What `adder` adds; None for a function that adds no pass."""
    kinds = _argument_kinds(adder.__doc__ or "")
    try:
        name, options = _describe(adder, [_PROBES[kind][0] for kind in kinds], context)
    except TypeError:
        return None
    driven = [_driven(adder, kinds, index, options, context) for index in range(len(kinds))]
    arguments = tuple(zip(kinds, driven, strict=True))
    return BuiltinPass(name, path, _options(options, arguments), arguments, adder)


def _argument_kinds(docstring: str) -> list[OptionType]:
    """The types of the arguments after the pass manager, of the overload that has the most."""
    overloads: list[list[str]] = [
        _ARGUMENT.findall(line) for line in docstring.splitlines() if "(" in line
    ]
    longest: list[str] = max(overloads, key=len) if overloads else []
    return [_kind(text) for text in longest[1:]]


def _driven(
    adder: Adder,
    kinds: Sequence[OptionType],
    index: int,
    options: Mapping[str, str],
    context: Any,
) -> str | None:
    values = [_PROBES[kind][position == index] for position, kind in enumerate(kinds)]
    changed = _describe(adder, values, context)[1]
    return next((name for name in options if options[name] != changed.get(name)), None)


def _options(
    texts: Mapping[str, str], arguments: Sequence[tuple[OptionType, str | None]]
) -> tuple[BuiltinOption, ...]:
    kinds: dict[str, OptionType] = {name: kind for kind, name in arguments if name is not None}
    return tuple(
        BuiltinOption(name, kinds[name], _default(name, kinds[name]))
        if name in kinds
        else BuiltinOption(name, _kind_of_value(text), text, settable=False)
        for name, text in texts.items()
    )


def _default(name: str, kind: OptionType) -> str | None:
    return _DEFAULTS.get(name, "false" if kind == "bool" else None)


def _of_target(name: str, target: Target | None) -> str | None:
    if target is None:
        return None
    of_target = {
        "compute-capability": str(target.arch),
        "target": str(target),
        "threads-per-warp": str(target.warp_size),
        **dict.fromkeys(_ARCHITECTURE_OPTIONS, str(target.arch)),
    }
    return of_target.get(name)


def _kind(signature: str) -> OptionType:
    """The type of an argument as pybind11 or nanobind writes it."""
    if "bool" in signature:
        return "bool"
    return "int" if "int" in signature.lower() else "str"


def _kind_of_value(text: str) -> OptionType:
    if text in ("true", "false"):
        return "bool"
    return "int" if re.fullmatch(r"-?\d+", text) else "str"
