"""In which order the remaining atoms of a gemm are emitted.

Every order takes the atoms of one accumulator tile by ascending k, as the dense gemm does: sums
are the same bit for bit. What differs is which accumulators alternate, and with that how ptxas
schedules and what it spills.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

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
