"""Gemms replaced by their remaining atoms, or, in `mode=check`, kept behind checks that trap.

Every order takes the atoms of one accumulator tile by ascending k, as the dense gemm does: sums
are the same bit for bit. What differs is which accumulators alternate, and with that how ptxas
schedules and what it spills.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from tilepass.core.diagnostics import SourceLocation
from tilepass.core.errors import OptionError
from tilepass.core.remarks import RemarkSink
from tilepass.ir.build import Builder
from tilepass.ir.cute import SEGMENTS
from tilepass.ir.engine import ir
from tilepass.passes.cute.cute_zero_mma.loads import drop_dead_loads
from tilepass.passes.cute.cute_zero_mma.sites import Fragment, GemmSite
from tilepass.passes.cute.cute_zero_mma.zeros import ZeroTiles, remaining

Said = tuple[SourceLocation | None, str]
"""A place in the source, and what was done there."""


@dataclass(frozen=True)
class Rewrite:
    """A gemm, its zero tiles, and the order in which its remaining atoms are emitted."""

    site: GemmSite
    zeros: ZeroTiles
    order: str


def rewrite_all(rewrites: Sequence[Rewrite], *, drop_loads: bool) -> list[Said]:
    """Rewrite gemms of one module; what was done, in words."""
    said: list[Said] = []
    if drop_loads:
        said += drop_dead_loads([(each.site, each.zeros) for each in rewrites])
    for each in rewrites:
        atoms = ORDERS[each.order](remaining(each.zeros, each.site.grid))
        emit_atoms(each.site, atoms)
        left_out = each.site.atoms - len(atoms)
        text = f"{each.site}: {left_out} of {each.site.atoms} atoms left out, order {each.order}"
        said.append((each.site.location, text + _unread(each)))
    return said


def _unread(rewrite: Rewrite) -> str:
    """What becomes of accumulators that nothing reads: their author may have forgotten to."""
    tiles, grid = len(rewrite.zeros.unread), rewrite.site.grid
    if not tiles:
        return ""
    which = "the accumulator" if tiles == grid[0] * grid[1] else f"{tiles} accumulator tile(s)"
    return f"; {tiles * grid[2]} of them since nothing reads {which} afterwards"


def emit_atoms(site: GemmSite, atoms: Sequence[Atom]) -> None:
    """Replace a gemm by one gemm per atom (m, n, k), in the order given.

    The accumulator is read and written in place: tiles without an atom keep what they hold.
    """
    builder = Builder.before(site.operation)
    mma = site.operation.operands[0]
    attributes = {SEGMENTS: site.operation.attributes[SEGMENTS]}
    left, right, sums = (_views(builder, f) for f in (site.a, site.b, site.accumulator))
    for m, n, k in atoms:
        total = sums(m, n)
        builder.create("cute.gemm", [mma, total, left(m, k), right(n, k), total], (), attributes)
    site.operation.erase()


def _views(builder: Builder, fragment: Fragment) -> Callable[[int, int], ir.Value]:
    """Views of a fragment's tiles, each made when it is first asked for."""
    made: dict[tuple[int, int], ir.Value] = {}

    def tile(outer: int, inner: int) -> ir.Value:
        if (outer, inner) not in made:
            made[outer, inner] = fragment.tile(builder, outer, inner)
        return made[outer, inner]

    return tile


Atom = tuple[int, int, int]
"""(m, n, k)."""

# A dependent mma.sync can issue after about 33 cycles on sm_90, an independent one after 6 (the
# issue stall that ptxas gives HMMA.16816.F32 there): with six accumulators in flight none waits.
IN_FLIGHT = 6


def k_outer(atoms: Sequence[Atom]) -> list[Atom]:
    """k outermost, n innermost: the dense order with gaps."""
    return sorted(atoms, key=lambda atom: (atom[2], atom[0], atom[1]))


def n_outer(atoms: Sequence[Atom]) -> list[Atom]:
    """One accumulator after the other."""
    return sorted(atoms, key=lambda atom: (atom[0], atom[1], atom[2]))


def groups_of_four(atoms: Sequence[Atom]) -> list[Atom]:
    """Groups of four n outermost, in each k, then n."""
    return sorted(atoms, key=lambda atom: (atom[0], atom[1] // 4, atom[2], atom[1]))


def serpentine(atoms: Sequence[Atom]) -> list[Atom]:
    """k outermost; n descends where k is odd, so that B fragments are used again at once."""
    return sorted(atoms, key=lambda atom: (atom[2], atom[0], -atom[1] if atom[2] % 2 else atom[1]))


def diagonal(atoms: Sequence[Atom]) -> list[Atom]:
    """Anti-diagonals of (k, pairs of n)."""
    return sorted(atoms, key=lambda atom: (atom[2] + atom[1] // 2, atom[0], atom[2], atom[1]))


def longest_chain(atoms: Sequence[Atom]) -> list[Atom]:
    """Rounds of `IN_FLIGHT` accumulators, those with most atoms left first.

    List scheduling by critical path: near the triangle's tip `k_outer` is left with two
    accumulators, whose atoms wait for each other; here the long chains start early and the short
    ones fill the gaps.
    """
    chains: dict[tuple[int, int], list[Atom]] = {}
    for atom in k_outer(atoms):
        chains.setdefault(atom[:2], []).append(atom)
    order: list[Atom] = []
    while any(chains.values()):
        waiting = sorted(
            (chain for chain in chains.values() if chain), key=lambda chain: -len(chain)
        )
        order += [chain.pop(0) for chain in waiting[:IN_FLIGHT]]
    return order


ORDERS: Mapping[str, Callable[[Sequence[Atom]], list[Atom]]] = MappingProxyType(
    {
        "k": k_outer,
        "n": n_outer,
        "n4": groups_of_four,
        "k-serpentine": serpentine,
        "diagonal": diagonal,
        "longest-chain": longest_chain,
    }
)


# Size of an element in bits -> the bits of a 32-bit register that are not signs: -0.0 is zero too.
_MAGNITUDE = {8: 0x7F7F7F7F, 16: 0x7FFF7FFF, 32: 0x7FFFFFFF}
_OPERANDS_ONLY = "mode=check can look at operands only, not at who reads accumulator tiles"


def check_all(
    tiles: Sequence[tuple[GemmSite, ZeroTiles]], remarks: RemarkSink, *, proven: bool
) -> None:
    """Keep gemms dense, and trap where a tile that should be zero is not."""
    for site, zeros in tiles:
        checked = emit_checks(site, checkable(site, zeros, remarks) if proven else zeros)
        if checked:
            remarks.passed(site.location, f"{site}: traps if one of {checked} tiles is not zero")


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
    for name, fragment, (outer, k) in _operand_tiles(site, zeros):
        words = fragment.words(builder, outer, k)
        value = words[0]
        for word in words[1:]:
            value = builder.integer("ori", value, word)
        value = builder.integer("andi", value, builder.constant(_MAGNITUDE[fragment.tensor.bits]))
        wrong = builder.compare("ne", value, builder.constant(0))
        _trap(builder, wrong, f"tilepass: {site}: tile {name}{outer}k{k}")
        checked += 1
    return checked


def _operand_tiles(
    site: GemmSite, zeros: ZeroTiles
) -> Iterator[tuple[str, Fragment, tuple[int, int]]]:
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
