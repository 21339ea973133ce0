# The DSL ships no types.
# pyright: basic, reportAttributeAccessIssue=false
"""FlashInfer's prefill with mistakes: each must lose the zero tiles that it makes false, no others.

NewV multiplies by the inverted KK matrix (gemms 10, 23, 36: one in each body of the kernel), O2 by
the QK matrix (11, 24, 37). A tile (n, k) holds rows 8n to 8n + 7 and columns 16k to 16k + 15 of the
lower triangular 64 x 64 matrix: of 32 tiles, the 12 with 8n + 7 < 16k are zero. Both matrices have
one buffer for all bodies, and the analysis does not tell apart when a buffer is written: what one
body stores there, all of them lose. So a mistake with one matrix costs its three gemms the same
tiles and leaves the other three alone.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import cutlass
import pytest
from cutlass import cute
from cutlass.cutlass_dsl import CuTeDSL
from flashinfer_source import flashinfer

from benchmarks.gdn_prefill.source import load_class
from benchmarks.gdn_prefill.wheels import WITHOUT_SKIP
from benchmarks.gdn_prefill.workload import Inputs, case
from tilepass.analysis.zero_structure import ZeroStructure, analyse, tag_sites
from tilepass.frontends.cute.lowering import lower_for_analysis, stock_pipeline
from tilepass.ir.engine import Module, copied

pytestmark = pytest.mark.traces

KERNELS = "flashinfer/gdn_kernels/delta_rule_dsl"
FILE = "delta_rule_sm120.py"
NEW_V, O2 = (10, 23, 36), (11, 24, 37)

PREDICATE = "            pred = s >= t\n"
MASK_QK = "            self.qk_or_kk_mask(tQKrQK, tQKcMqk, is_final_block, B)\n"
MASK_KK = "            self.qk_or_kk_mask(tKKrKK, tKKcMkk, is_final_block, B)\n"
DEFINITION = "    @cute.jit\n    def qk_or_kk_mask(\n"
BETA = "                        * cutlass.Float32(sBeta[t, beta_pipe_idx])\n"
TAIL = "                False,\n                True,\n                last_B,\n"

# A second mask for one of the matrices; {} is what it keeps.
OTHER_MASK = """    @cute.jit
    def other_mask(self, frag: cute.Tensor, coord_tensor: cute.Tensor):
        for i in cutlass.range_constexpr(cute.size(frag)):
            s, t = coord_tensor[i]
            if not ({}):
                frag[i] = cutlass.Float32({})

"""


def other_mask(keeps: str, fill: str = "0.0") -> tuple[str, str]:
    """The edit that defines it."""
    return DEFINITION, OTHER_MASK.format(keeps, fill) + DEFINITION


def edited(folder: Path, target: Path, edits: list[tuple[str, str]]) -> Path:
    """A copy of the kernel folder in `target` with texts of the prefill's file replaced.

    Each text must be there exactly once.
    """
    shutil.copytree(
        folder / KERNELS, target / KERNELS, ignore=shutil.ignore_patterns("__pycache__")
    )
    path = target / KERNELS / FILE
    text = path.read_text(encoding="utf-8")
    for before, after in edits:
        assert text.count(before) == 1, f"{text.count(before)} times in {FILE}: {before}"
        text = text.replace(before, after)
    path.write_text(text, encoding="utf-8")
    return target


class Traced(Exception):
    """Raised to stop the DSL once the module is there."""


def analysed(folder: Path, beta: bool) -> ZeroStructure:
    """The zero structure of the class in a folder, with the initial state."""
    kernel_class = load_class(folder)
    half, dtype = (cutlass.BFloat16, "bf16") if beta else (cutlass.Float16, "f16")
    kernel = kernel_class(False, beta, True, False, half)
    inputs = Inputs(case(2, 128, 4), dtype, "cpu")
    arguments: list[Any] = inputs.arguments(inputs.new_outputs(), "trace")
    absent = (4,) if beta else (4, 5)
    found: list[Module] = []

    def keep(_owner: object, module: Module, _function: str) -> None:
        found.append(copied(module))
        raise Traced

    with (
        CuTeDSL._get_dsl().trace_finalize_hooks(keep),
        pytest.raises(Exception, match="hook"),
    ):
        cute.compile[(cute.GPUArch("sm_90a"),)](
            kernel, *(None if at in absent else value for at, value in enumerate(arguments))
        )
    (module,) = found
    assert tag_sites(module) == 39
    return analyse(lower_for_analysis(module, stock_pipeline("sm_90a")))


def tiles(structure: ZeroStructure, sites: tuple[int, ...]) -> set[int]:
    """How many tiles of B are zero, in each of some gemms."""
    return {int(structure.sites[site].b_zero.sum()) for site in sites}


MUTANTS = {
    # 8n + 7 + 16 < 16k: 2 tiles for k = 2 and 4 for k = 3.
    "mask 16 rows later": ([(PREDICATE, PREDICATE.replace("s >=", "s + 16 >="))], False, 6, 6),
    # 8n + 7 + 8 < 16k: 1, 3 and 5 tiles; 0 * NaN is not 0, even where 0 * x = 0 is assumed.
    "mask 8 rows later for QK, beta a NaN": (
        [
            other_mask("s + 8 >= t"),
            (MASK_QK, "            self.other_mask(tQKrQK, tQKcMqk)\n"),
            (BETA, "                        * cutlass.Float32(float('nan'))\n"),
        ],
        True,
        0,
        9,
    ),
    "no mask in the steady body": (
        [(MASK_QK, f"            if cutlass.const_expr(is_final_block):\n    {MASK_QK}")],
        False,
        12,
        0,
    ),
    "no mask in the tail": (
        [
            (TAIL, TAIL.replace("True", "2")),
            (MASK_KK, f"            if cutlass.const_expr(is_final_block != 2):\n    {MASK_KK}"),
        ],
        False,
        0,
        12,
    ),
    # The buffer of QK holds the unmasked product first; what KK's mask stores is not zero.
    "buffer used before, constant that is not zero": (
        [
            other_mask("s >= t", fill="0.5"),
            (
                MASK_QK,
                f"            self.qk_store(tQKrQK, sQK, qk_tiled_mma, qk_thread_idx)\n{MASK_QK}",
            ),
            (MASK_KK, "            self.other_mask(tKKrKK, tKKcMkk)\n"),
        ],
        False,
        0,
        0,
    ),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_mutant_loses_its_tiles(name: str, tmp_path: Path) -> None:
    edits, beta, new_v, o2 = MUTANTS[name]
    structure = analysed(edited(flashinfer(WITHOUT_SKIP), tmp_path, edits), beta)
    assert structure.failure is None
    assert (tiles(structure, NEW_V), tiles(structure, O2)) == ({new_v}, {o2})
