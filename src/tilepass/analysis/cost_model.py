"""Cost models: from facts that are known at compile time to a choice.

Each function answers None where nothing measured covers the facts; the caller then keeps what the
author wrote. None of these facts depends on a run-time size.
"""

from __future__ import annotations

from collections.abc import Mapping

from tilepass.core.decisions import Choice, Fact

# Half of the smallest epilogue measured (128x256 bf16). The gain of flattening is the epilogue and
# the pipeline's fill, its price a few scalar instructions in every step of the inner loop.
_LEAST_EPILOGUE_BYTES = 32 * 1024

# Columns of tensor memory on sm_100 (PTX ISA, "Tensor Memory": 512 columns of 128 lanes x 32 bit).
_TENSOR_MEMORY_COLUMNS = 512


def flatten_choice(facts: Mapping[str, Fact]) -> Choice | None:
    """Whether to flatten a tile loop on Hopper: "on", "off", or None for no opinion.

    Facts as `analysis.nest_facts.nest_facts` gives them. Measured on an H200 with Triton 3.6.0,
    time flattened over time not flattened, medians of paired launches (`results/*.json`):

    * A in registers (bf16 x mxfp4, dequantised in the kernel): 1.053 to 1.507 in all 30 points of
      five M, three N x K, one and two programs an SM. The flattened body reads the accumulator
      where an asynchronous dot may be writing it, so that ptxas serializes every wgmma. Repaired by
      `fix-dot-wait`: 0.956 to 1.049, above 1 in 20 of 30; the model does not count on that pass.
    * Both operands in shared memory (bf16, 128x256x64, 8 warps, one program an SM): 0.865 to 0.978
      in four of six shapes, 0.987 in the fifth, 1.000 in the sixth (K = 16384).

    Extrapolated, not measured: other tiles, types (fp8) and epilogues at one program an SM, where
    "on" is the answer all the same; other tiles with A in registers; and `tl.dot_scaled`, which
    becomes such a dot (0.984 to 1.091 in an earlier measurement that `results` does not hold).

    With two programs an SM one program's main loop hides the other's epilogue already; this was
    not measured for operands in shared memory, nor were small epilogues: no opinion there.
    """
    if facts.get("arch") != 90:
        return None
    if facts.get("dot") in ("register-a", "scaled"):
        return Choice(
            "off", "a wgmma with A in registers cannot overlap what reads its accumulator next"
        )
    if facts.get("dot") != "shared" or facts.get("programs_per_sm") != 1:
        return None
    epilogue = facts.get("epilogue_bytes")
    if not isinstance(epilogue, int) or epilogue < _LEAST_EPILOGUE_BYTES:
        return None
    return Choice("on", "the next tile's loads overlap an epilogue that nothing else hides")


def accumulator_choice(facts: Mapping[str, Fact]) -> Choice | None:
    """Whether two buffers for a tensor memory accumulator fit: "allow", "disallow" or None.

    `columns` is what one accumulator takes, `reserved_columns` what scales and other operands in
    tensor memory take.
    """
    columns, reserved = facts.get("columns"), facts.get("reserved_columns")
    if not isinstance(columns, int) or not isinstance(reserved, int):
        return None
    if 2 * columns + reserved > _TENSOR_MEMORY_COLUMNS:
        return Choice("disallow", "two accumulators do not fit into 512 columns of tensor memory")
    return Choice("allow", "two accumulators fit into tensor memory")
