"""What the author said of the loops of a nest (`tl.range(..., num_stages=1)`), and what of it is
lost where the nest gets another form.

Fusing was tried on Triton 3.6.0 and 3.9.0 with each attribute on either loop. The fused loop has
the larger `tt.num_stages`, `tt.disallow_acc_multi_buffer` and `tt.warp_specialize` if one of the
two has them, and nothing else; before 3.9 a largest `tt.num_stages` of 1 is dropped as well.
"""

from __future__ import annotations

from collections.abc import Mapping

from tilepass.core.decisions import Fact
from tilepass.core.pass_base import CompilerVersion
from tilepass.ir.engine import ir
from tilepass.ir.loops import Loop, LoopNest

_TILE, _DOT = "tile_loop", "dot_loop"
_WORDS = {_TILE: "the tile loop", _DOT: "the dot loop"}
_STAGES, _BUFFER, _SPECIALIZE = "num_stages", "disallow_acc_multi_buffer", "warp_specialize"
# `tt.flatten` is what is decided; how a loop counts is part of its meaning and stays.
_NOT_SAID = ("tt.flatten", "unsignedCmp")
_KEEPS_ONE_STAGE = (3, 9)


def attribute_facts(nest: LoopNest) -> Mapping[str, Fact]:
    """Each attribute of both loops under `tile_loop.NAME` and `dot_loop.NAME`, as in `tl.range`."""
    loops = ((_TILE, nest.outer), (_DOT, nest.inner[0]))
    return {f"{where}.{name}": value for where, loop in loops for name, value in _said(loop)}


def lost_by_fusing(nest: LoopNest, compiler: CompilerVersion) -> list[str]:
    """What is not as the author said once the loops are one."""
    facts = attribute_facts(nest)
    fused = fused_stages(facts, compiler)
    lost: list[str] = []
    for key, value in facts.items():
        where, _, name = key.partition(".")
        if name in (_BUFFER, _SPECIALIZE):
            continue
        # Of the tile loop it says how far tiles overlap: the fused loop would take it for its own.
        if name == _STAGES and where == _DOT and value == fused:
            continue
        lost.append(_text(where, name, value))
    return lost


def lost_by_nesting(nest: LoopNest) -> list[str]:
    """What is not as the author said once a nest that was to be fused is not.

    What is said of the tile loop holds for the fused one, and then no longer for the dot's.
    """
    facts = attribute_facts(nest)
    return [
        _text(_TILE, name, facts[f"{_TILE}.{name}"])
        for name in (_STAGES, _BUFFER)
        if f"{_TILE}.{name}" in facts and f"{_DOT}.{name}" not in facts
    ]


def lost_by_specializing(nest: LoopNest) -> list[str]:
    """What is not as the author said once warps share a nest, each with loops of its own.

    Slots for the operands take the place of pipelined loads, however many, but not of none. The
    flattened form, Triton's own specialization and the buffers of tensor memory have no meaning
    for such loops.
    """
    return [
        _text(where, name, value)
        for (where, _, name), value in (
            (key.partition("."), value) for key, value in attribute_facts(nest).items()
        )
        if name not in (_STAGES, _BUFFER, _SPECIALIZE)
        or (where == _DOT and name == _STAGES and isinstance(value, int) and value <= 1)
    ]


def fused_stages(facts: Mapping[str, Fact], compiler: CompilerVersion) -> int | None:
    """The `num_stages` of the fused loop, None for that of the kernel."""
    found = [facts.get(f"{where}.{_STAGES}") for where in (_TILE, _DOT)]
    most = max((each for each in found if isinstance(each, int)), default=None)
    if most == 1 and compiler.version < _KEEPS_ONE_STAGE:
        return None
    return most


def _said(loop: Loop) -> list[tuple[str, Fact]]:
    attributes = loop.operation.attributes
    return [_fact(name, attributes[name]) for name in sorted(attributes) if name not in _NOT_SAID]


def _fact(name: str, attribute: ir.Attribute) -> tuple[str, Fact]:
    text = str(attribute)
    if name == "llvm.loop_annotation" and "licm" in text:
        return "disable_licm", True
    name = name.removeprefix("tt.")
    if isinstance(attribute, ir.UnitAttr):
        return name, True
    return name, attribute.value if isinstance(attribute, ir.IntegerAttr) else text


def _text(where: str, name: str, value: Fact) -> str:
    return f"{name}{'' if value is True else f' = {value}'} of {_WORDS[where]}"
