"""Operations of the NVVM dialect that only compute: registers in, registers out.

From the dialect of nvidia-cutlass-dsl 4.6 to 4.8 and the PTX instructions behind it (PTX ISA 8.7,
chapters 9.7.1 to 9.7.9 and 9.7.13). Those of one warp that exchange registers are among them. Not
here, because they may store: `inline_ptx`, `tensormap.replace`, `st.bulk`, `store.*`, `atomicrmw`,
`red`, `multimem.*`, `clusterlaunchcontrol.try.cancel`, `wmma.store`.
"""

from __future__ import annotations

_NAMES = frozenset(
    (
        *("addf", "subf", "mul", "fma", "fabs", "fmax", "fmin", "compare.and.set"),
        *("ex2", "log2", "rsqrt", "sin", "cos", "rcp.approx.ftz.f"),
        *("clmad", "prmt", "dot.accumulate.2way", "dot.accumulate.4way"),
        *("cvt.packfloat", "cvt.packfloat.f32", "cvt.to.f4x8.packed"),
        *("movmatrix", "redux.sync", "match.sync", "vote.sync", "vote.ballot.sync", "elect.sync"),
        *("mma.sp.sync", "mma.block_scale", "mma.sp.block_scale", "wmma.mma"),
        *("mma.block_scale.internal", "mma.sp.block_scale.internal"),
        *("spcompress", "spdecompress", "mma_smem_desc", "clusterlaunchcontrol.query.cancel"),
    )
)
# Families that are pure as a whole.
_FAMILIES = (
    *("read.ptx.sreg.", "convert."),
    *("add.packed.", "sub.packed.", "mul.packed.", "fma.packed."),
)


def only_computes(name: str) -> bool:
    """Whether an operation is of the dialect and touches no memory."""
    dialect, _, rest = name.partition(".")
    return dialect == "nvvm" and (rest in _NAMES or rest.startswith(_FAMILIES))


__all__ = ["only_computes"]
