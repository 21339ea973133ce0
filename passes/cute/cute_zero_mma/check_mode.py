"""`mode=check`: the dense gemm stays, and traps where a fragment that should be zero is not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tilepass.core.errors import OptionError
from tilepass.core.remarks import RemarkSink
from tilepass.ir.build import Builder
from tilepass.ir.engine import ir
from tilepass.passes.cute.cute_zero_mma.fragments import Fragment
from tilepass.passes.cute.cute_zero_mma.sites import GemmSite
from tilepass.passes.cute.cute_zero_mma.zero_tiles import ZeroTiles

# Size of an element in bits -> the bits of a 32-bit register that are not signs: -0.0 is zero too.
_MAGNITUDE = {8: 0x7F7F7F7F, 16: 0x7FFF7FFF, 32: 0x7FFFFFFF}
_OPERANDS_ONLY = "mode=check can look at operands only, not at who reads accumulator tiles"


def checkable(site: GemmSite, zeros: ZeroTiles, remarks: RemarkSink) -> ZeroTiles:
    """What can be checked of tiles that were proven; a remark says what cannot."""
    if zeros.unread:
        unread = ZeroTiles(unread=zeros.unread)
        remarks.missed(site.location, f"{site}: not checked, since {_OPERANDS_ONLY}: {unread}")
    return replace(zeros, unread=frozenset())


def emit_checks(site: GemmSite, zeros: ZeroTiles) -> int:
    """Check, before a gemm, that the tiles of A and B are zero; returns how many are checked.

    A thread that finds another value prints the gemm, the tile and itself, and traps. Raises
    OptionError for tiles of which nothing can be checked.
    """
    if zeros.unread:
        raise OptionError(f"{site}: {_OPERANDS_ONLY}")
    builder = Builder.before(site.operation)
    checked = 0
    for name, fragment, (outer, k) in _tiles(site, zeros):
        words = fragment.words(builder, outer, k)
        value = words[0]
        for word in words[1:]:
            value = builder.integer("ori", value, word)
        value = builder.integer("andi", value, builder.constant(_MAGNITUDE[fragment.tensor.bits]))
        wrong = builder.compare("ne", value, builder.constant(0))
        _trap(builder, wrong, f"tilepass: {site}: tile {name}{outer}k{k}")
        checked += 1
    return checked


def _tiles(site: GemmSite, zeros: ZeroTiles) -> Iterator[tuple[str, Fragment, tuple[int, int]]]:
    for tile in sorted(zeros.b):
        yield "n", site.b, tile
    for tile in sorted(zeros.a):
        yield "m", site.a, tile


def _trap(builder: Builder, wrong: ir.Value, subject: str) -> None:
    """`if wrong: print; trap`, the way the DSL reports its own assertions."""
    branch = builder.create("scf.if", [wrong], regions=2)
    inside = Builder.at_end(branch.regions[0].blocks.append(), builder.location)
    place = [
        inside.create(f"nvvm.read.ptx.sreg.{register}", results=[inside.type("i32")]).result
        for register in ("tid.x", "tid.y", "tid.z", "ctaid.x", "ctaid.y", "ctaid.z")
    ]
    text = f"{subject} is not zero: thread ({{}}, {{}}, {{}}), block ({{}}, {{}}, {{}})\n"
    quoted = ir.StringAttr.get(text, inside.context)
    inside.create("cute.print", place, (), {"fmt": quoted})
    inside.create(
        "llvm.inline_asm",
        (),
        (),
        {"asm_string": '"trap;"', "constraints": '""', "has_side_effects": "unit"},
    )
    inside.yield_()
