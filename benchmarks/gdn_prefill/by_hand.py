"""FlashInfer's class with the zero atoms left out by hand: what the pass has to reproduce."""

from __future__ import annotations

import shutil
from pathlib import Path

from benchmarks.gdn_prefill.source import KERNELS, PREFILL
from tilepass.core.errors import TilepassError

_CALLS = (
    "cute.gemm(newv_tiled_mma, tNewVrC, tNewVrA, tNewVrB, tNewVrC)",
    "cute.gemm(o2_tiled_mma, tOrO, tOrNewV, tOrQK, tOrO)",
)
# Fragments of B are 8 x 16: (n, k) lies wholly under the diagonal of B = T^T where 8 n + 7 < 16 k.
_HELPER = """

def _without_zero_atoms(element, d, a, b):
    atom = cute.make_mma_atom(warp.MmaF16BF16Op(element, cutlass.Float32, (16, 8, 16)))
    for k in range(cute.size(b, mode=[2])):
        for n in range(cute.size(b, mode=[1])):
            if 8 * n + 7 >= 16 * k:
                tile = b[None, n, k]
                total = d[None, None, n]
                one = cute.make_layout(1)
                tile = cute.make_tensor(tile.iterator, cute.append(tile.layout, one))
                total = cute.make_tensor(total.iterator, cute.append(total.layout, one))
                cute.gemm(atom, total, a[None, None, k], tile, total)
"""


def write_by_hand(folder: Path, into: Path) -> Path:
    """Copy the kernels of an unpacked FlashInfer to `into`, the two gemms replaced by loops over
    their remaining atoms. Raises TilepassError where the source has not exactly these gemms."""
    package = Path(*KERNELS.split("."))
    shutil.copytree(folder / package, into / package)
    file = into / package / f"{PREFILL[0]}.py"
    text = file.read_text()
    for call in _CALLS:
        if text.count(call) != 1:
            raise TilepassError(f"{file}: expected one '{call}'")
        d, a, b = call.removesuffix(")").split(", ")[1:4]
        text = text.replace(call, f"_without_zero_atoms(self.dtype, {d}, {a}, {b})")
    head, mark, rest = text.partition("\n\nclass ")
    file.write_text(head + _HELPER + mark + rest)
    return into
