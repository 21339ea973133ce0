"""The `cute.gemm`s of a module: those that can be taken apart into atoms, and why others cannot."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from tilepass.core.diagnostics import SourceLocation
from tilepass.core.errors import OptionError
from tilepass.core.refusal import Refusal, attempt
from tilepass.ir import engine
from tilepass.ir.build import Builder
from tilepass.ir.cute import Layout, StaticTensor, build, joined, static_tensor
from tilepass.ir.engine import Module, Operation, ir
from tilepass.ir.walks import ancestors

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
    return f"out of reach: {kind} is not a warp-level mma.sync that this pass knows"


def _is_permuted(kind: str) -> bool:
    """Whether a permutation of the tiled MMA is more than a size (`64:1`) or nothing (`_`)."""
    match = _PERMUTATION.search(kind)
    modes = match[1].split(";") if match else []
    return not all(re.fullmatch(r"_|\d+:1", mode) for mode in modes)


def _source_text(operation: Operation) -> str:
    match = _SOURCE_TEXT.match(str(operation.location))
    return match[1] if match else ""


ALL = "all"


def selected(sites: Sequence[GemmSite | Refusal], text: str) -> dict[int, GemmSite | Refusal]:
    """The gemms that the option names, by their index: `all`, or words joined by `+`.

    A word is an index (`3`), a line (`:1021` or `file.py:1021`), or a part of the source statement
    (`tNewVrC`). Raises OptionError where a word names no gemm, and where there is no word.
    """
    if text == ALL:
        return dict(enumerate(sites))
    words = list(filter(None, re.split(r"[\s+]+", text)))
    if not words:
        raise OptionError(f"sites='{text}' names no gemm{_range_of(sites)}")
    chosen: set[int] = set()
    for word in words:
        found = {index for index, site in enumerate(sites) if _names(word, index, site)}
        if not found:
            raise OptionError(f"sites='{text}': no gemm matches '{word}'{_range_of(sites)}")
        chosen |= found
    return {index: sites[index] for index in sorted(chosen)}


def _names(word: str, index: int, site: GemmSite | Refusal) -> bool:
    """Whether one word of the option stands for a gemm."""
    if word.isdecimal():
        return index == int(word)
    if not isinstance(site, GemmSite):
        return False
    file, colon, line = word.rpartition(":")
    if colon and line.isdecimal():
        place = site.location
        return place is not None and place.line == int(line) and place.file.endswith(file)
    return word.lower() in site.text.lower()


def _range_of(sites: Sequence[GemmSite | Refusal]) -> str:
    if not sites:
        return ": the module has none"
    located = any(isinstance(site, GemmSite) and site.location for site in sites)
    hint = "" if located else " (without line information only indices name one)"
    return f"; gemms 0 to {len(sites) - 1}{hint}"


_ELEMENTS = frozenset({"f16", "bf16", "f8E4M3FN", "f8E5M2", "tf32", "f32", "f64"})
_UNIT = Layout(1, 0)


@dataclass(frozen=True)
class Fragment:
    """A tensor in registers with a static layout of modes (value, outer, inner).

    For A the tiles are [m, k], for B [n, k], for the accumulator [m, n].
    """

    value: ir.Value
    tensor: StaticTensor

    @property
    def is_dense(self) -> bool:
        """Whether the values of a tile lie side by side. The compiler reads B's as if they did."""
        return self._values.offsets() == list(range(self._values.size))

    @property
    def tiles(self) -> tuple[int, int]:
        """Extents of the two modes that count tiles."""
        _, outer, inner = self.tensor.layout.modes
        return outer.size, inner.size

    def offsets(self, outer: int, inner: int) -> list[int]:
        """Where the elements of one tile lie, in elements from the tensor's begin."""
        start = self._offset(outer, inner)
        return [start + offset for offset in self._values.offsets()]

    def tile(self, builder: Builder, outer: int, inner: int) -> ir.Value:
        """A view of one tile, modes (value, 1, 1)."""
        pointer, part = self._pointer(builder, outer, inner)
        view = part.part(0, joined((self._values, _UNIT, _UNIT)))
        return build(builder, "cute.make_view", [pointer], view)

    def words(self, builder: Builder, outer: int, inner: int) -> list[ir.Value]:
        """The registers of one tile as i32 values.

        The values of a tile must lie densely, as they do in fragments of warp-level MMAs.
        """
        pointer, part = self._pointer(builder, outer, inner)
        count = self._values.size * part.bits // 32
        packed = StaticTensor("i32", part.space, part.align, "", joined((Layout(count, 1),)))
        recast = build(builder, "cute.recast_iter", [pointer], packed.pointer)
        view = build(builder, "cute.make_view", [recast], packed)
        return [_load(builder, view, index) for index in range(count)]

    @property
    def _values(self) -> Layout:
        return self.tensor.layout.modes[0]

    def _offset(self, outer: int, inner: int) -> int:
        _, first, second = self.tensor.layout.modes
        return first.offset(outer) + second.offset(inner)

    def _pointer(self, builder: Builder, outer: int, inner: int) -> tuple[ir.Value, StaticTensor]:
        """A pointer to one tile, and what lies there: the tile's values."""
        part = self.tensor.part(self._offset(outer, inner), joined((self._values,)))
        place = _coordinate(builder, f"(_,{outer},{inner})")
        sliced = build(builder, "cute.slice", [self.value, place], part)
        return build(builder, "cute.get_iter", [sliced], part.pointer), part


def fragment_of(value: ir.Value) -> Fragment | None:
    """The typed view of a gemm's operand; None unless it is a static rank-3 register tensor."""
    tensor = static_tensor(str(value.type))
    if tensor is None or tensor.space != "rmem" or tensor.element not in _ELEMENTS:
        return None
    return Fragment(value, tensor) if len(tensor.layout.modes) == 3 else None


def _coordinate(builder: Builder, text: str) -> ir.Value:
    return build(builder, "cute.make_coord", (), f'!cute.coord<"{text}">')


def _load(builder: Builder, packed: ir.Value, index: int) -> ir.Value:
    operands = [packed, _coordinate(builder, str(index))]
    return build(builder, "cute.memref.load", operands, "i32")
