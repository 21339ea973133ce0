"""The `cute.gemm`s of a module: those that can be taken apart into atoms, and why others cannot."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tilepass.core.diagnostics import SourceLocation
from tilepass.core.refusal import Refusal, attempt
from tilepass.ir import engine
from tilepass.ir.engine import Module, Operation
from tilepass.ir.walks import ancestors
from tilepass.passes.cute.cute_zero_mma.fragments import Fragment, fragment_of

_ATOM = re.compile(
    r"!cute_nvgpu\.(sm80|sm89)\.mma<(\d+)x(\d+)x(\d+), elem_type = \((\w+), (\w+), (\w+)\)"
)
_WARPS = re.compile(r'atom_layout_MNK = <"\((\d+),(\d+),(\d+)\):')
_PERMUTATION = re.compile(r'permutation_MNK = <"\[([^\]"]*)\]">')
_SOURCE_TEXT = re.compile(r'loc\("((?:[^"\\]|\\.)*)"\(')
_LOOPS = ("scf.for", "scf.while")

_WARPGROUP = (
    "a wgmma reads B from shared memory by a descriptor and covers all of N and a whole warp group "
    "in one instruction: there is no smaller piece to leave out"
)
_TCGEN05 = (
    "a tcgen05.mma is issued by one thread, reads its operands from shared or tensor memory and "
    "covers the whole tile in one instruction: there is no smaller piece to leave out"
)


@dataclass(frozen=True)
class GemmSite:
    """A `cute.gemm` whose operands are register fragments of warp-level MMA atoms.

    `index` counts all gemms of the module in program order. `shape` is the atom's (M, N, K) in
    elements, `grid` the tiles (M, N, K) that each thread's warp multiplies, `warps` the warps along
    (M, N, K), `permuted` whether tiles of a warp lie in the operands in another order than they
    count. `text` is the statement as the source has it, empty without line information.
    """

    index: int
    operation: Operation
    location: SourceLocation | None
    text: str
    elements: tuple[str, str, str]
    shape: tuple[int, int, int]
    grid: tuple[int, int, int]
    warps: tuple[int, int, int]
    permuted: bool
    accumulator: Fragment
    a: Fragment
    b: Fragment
    in_loop: bool

    @property
    def atoms(self) -> int:
        """MMA instructions of the dense gemm."""
        m, n, k = self.grid
        return m * n * k

    def __str__(self) -> str:
        """`gemm 3 (delta_rule.py:1021)`."""
        if self.location is None:
            return f"gemm {self.index}"
        file = self.location.file.rsplit("/", 1)[-1]
        return f"gemm {self.index} ({file}:{self.location.line})"


def gemm_sites(module: Module) -> list[GemmSite | Refusal]:
    """All gemms of a module in program order."""
    gemms = [each for each in engine.operations(module) if each.name == "cute.gemm"]
    return [attempt(_site, index, gemm, at=gemm) for index, gemm in enumerate(gemms)]


def _site(index: int, operation: Operation) -> GemmSite | Refusal:
    operands = operation.operands
    if len(operands) != 5:
        reason = f"it has {len(operands)} operands, expected MMA, D, A, B and C"
        return Refusal(operation, reason)
    mma, d, a, b, c = operands
    kind = str(mma.type)
    atom = _ATOM.search(kind)
    if atom is None:
        return Refusal(operation, _other_instruction(kind))
    fragments = [fragment_of(value) for value in (d, a, b)]
    accumulator, left, right = fragments
    if accumulator is None or left is None or right is None:
        which = next(name for name, f in zip("DAB", fragments, strict=True) if f is None)
        reason = (
            f"operand {which} is {(d, a, b)['DAB'.index(which)].type}, expected a register "
            "fragment with a static layout (value, tile, tile)"
        )
        return Refusal(operation, reason)
    if d != c:
        reason = "C and D are different tensors; only an accumulator updated in place is supported"
        return Refusal(operation, reason)
    (m, k), (n, k_of_b) = left.tiles, right.tiles
    if k != k_of_b or accumulator.tiles != (m, n):
        reason = (
            f"A has {left.tiles}, B {right.tiles} and D {accumulator.tiles} tiles: they do not "
            "agree on M, N and K"
        )
        return Refusal(operation, reason)
    warps = _WARPS.search(kind)
    return GemmSite(
        index,
        operation,
        engine.location_of(operation),
        _source_text(operation),
        (atom[5], atom[6], atom[7]),
        (int(atom[2]), int(atom[3]), int(atom[4])),
        (m, n, k),
        (int(warps[1]), int(warps[2]), int(warps[3])) if warps else (1, 1, 1),
        _is_permuted(kind),
        accumulator,
        left,
        right,
        any(each.name in _LOOPS for each in ancestors(operation)),
    )


def _other_instruction(kind: str) -> str:
    if "sm90.mma" in kind:
        return f"out of reach: {_WARPGROUP}"
    if "sm100" in kind or "sm103" in kind:
        return f"out of reach: {_TCGEN05}"
    return f"out of reach: {kind} is no warp-level mma.sync that this pass knows"


def _is_permuted(kind: str) -> bool:
    """Whether a permutation of the tiled MMA is more than a size (`64:1`) or nothing (`_`)."""
    match = _PERMUTATION.search(kind)
    modes = match[1].split(";") if match else []
    return not all(re.fullmatch(r"_|\d+:1", mode) for mode in modes)


def _source_text(operation: Operation) -> str:
    match = _SOURCE_TEXT.match(str(operation.location))
    return match[1] if match else ""
