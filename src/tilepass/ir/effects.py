"""What operations of tt, ttg, ttng, arith, math and scf do to memory.

The engine does not know Triton's dialects, so the facts stand here: from the traits and effect
declarations in Triton's operation definitions, versions 3.6 to 3.9.
"""

from __future__ import annotations

from enum import Flag, auto

from tilepass.ir.engine import ir


class Effect(Flag):
    """What an operation may do besides computing its results."""

    NONE = 0
    READ = auto()
    """Reads global, shared or tensor memory."""
    WRITE = auto()
    """Writes or allocates such memory."""
    SYNC = auto()
    """Orders other operations: barriers, waits, fences."""
    OTHER = auto()
    """Anything else that must neither move nor vanish: prints, asserts, calls, volatile loads,
    operations that are not known."""


def _named(**dialects: str) -> frozenset[str]:
    """Operation names from one text of bare names per dialect."""
    return frozenset(
        f"{dialect}.{name}" for dialect in dialects for name in dialects[dialect].split()
    )


_PURE_DIALECTS = ("arith", "math", "ub")

_PURE = _named(
    builtin="unrealized_conversion_cast",
    scf="yield condition reduce.return",
    cf="br cond_br",
    func="return",
    gpu="block_id block_dim grid_dim thread_id",
    llvm="intr.assume",
    tt=(
        "addptr advance approx_divf bitcast broadcast cat clampf dot dot_scaled expand_dims "
        "fp_to_fp gather get_num_programs get_program_id histogram int_to_ptr join make_range "
        "make_tensor_descriptor make_tensor_ptr map_elementwise map_elementwise.return mulhiui "
        "precise_divf precise_sqrt ptr_to_int reduce reduce.return reshape return scan "
        "scan.return splat split trans unsplat"
    ),
    ttg=(
        "convert_layout fp4_to_fp mask mask.return memdesc_index memdesc_reinterpret "
        "memdesc_reshape memdesc_subslice memdesc_trans predicate_stage warp_id warp_return "
        "warp_yield"
    ),
    ttng=(
        "clc_get_program_id clc_is_canceled packed_arith reinterpret_tensor_descriptor "
        "tmem_subslice"
    ),
)

_READ = _named(
    tt="load descriptor_load descriptor_gather",
    ttg="local_load local_gather",
    ttng="clc_load_result tmem_load warp_group_dot",
)

_WRITE = _named(
    tt="store descriptor_store descriptor_scatter",
    ttg="global_scratch_alloc local_alloc local_dealloc local_scatter local_store",
    ttng="tensormap_create tmem_alloc tmem_store",
)

_READ_WRITE = _named(
    tt="descriptor_reduce",
    ttg="async_copy_global_to_local local_atomic_scatter_rmw",
    ttng=(
        "async_shared_store async_tma_copy_global_to_local async_tma_copy_local_to_global "
        "async_tma_gather async_tma_reduce async_tma_scatter clc_try_cancel clc_try_cancel_sync "
        "tc_gen5_mma tc_gen5_mma_scaled tmem_copy"
    ),
)

_SYNC = _named(
    gpu="barrier",
    nvvm="barrier barrier0",
    tt="grid_dependency_launch_dependents grid_dependency_wait",
    ttg="async_commit_group async_wait barrier local_barrier warp_specialize",
    ttng=(
        "arrive_barrier async_copy_mbarrier_arrive async_tma_store_wait barrier_expect "
        "cluster_arrive cluster_barrier cluster_wait fence_async_shared "
        "fence_mbarrier_init_release_cluster init_barrier inval_barrier tc_gen5_commit "
        "tensormap_fenceproxy_acquire tmem_wait wait_barrier warp_group_dot_wait"
    ),
)

# An atomic orders memory as well, with `relaxed` semantics and without.
_ATOMIC = _named(tt="atomic_cas atomic_load atomic_poll atomic_rmw atomic_store")

# Functions of the author's making, of which the operation says whether they are pure.
_MARKED = _named(tt="elementwise_inline_asm extern_elementwise", ttg="inline_asm")

# Their effects are those of their regions.
_STRUCTURED = _named(
    builtin="module",
    func="func",
    scf="for if while execute_region index_switch",
    tt="func",
    ttg="warp_specialize.partitions",
)


def effects_of(operation: ir.OpView | ir.Operation) -> Effect:
    """The effects of an operation and, where it has regions, of all operations inside it.

    An operation that is not known has `Effect.OTHER`.
    """
    operation = operation.operation
    effects = Effect.NONE if operation.name in _STRUCTURED else _own_effects(operation)
    for region in operation.regions:
        for block in region:
            for inner in block:
                effects |= effects_of(inner)
    return effects


def _own_effects(operation: ir.Operation) -> Effect:
    name = operation.name
    if name in _PURE or name.partition(".")[0] in _PURE_DIALECTS:
        return Effect.NONE
    if name in _READ:
        return Effect.READ | Effect.OTHER if _flag(operation, "isVolatile") else Effect.READ
    if name in _WRITE:
        return Effect.WRITE
    if name in _READ_WRITE:
        return Effect.READ | Effect.WRITE
    if name in _SYNC:
        return Effect.SYNC
    if name in _ATOMIC:
        return Effect.READ | Effect.WRITE | Effect.SYNC
    if name in _MARKED and _flag(operation, "pure"):
        return Effect.NONE
    return Effect.OTHER


def _flag(operation: ir.Operation, name: str) -> bool:
    attribute = operation.attributes.get(name)
    return isinstance(attribute, ir.BoolAttr) and attribute.value


def is_pure(operation: ir.OpView | ir.Operation) -> bool:
    """Whether the operation, regions included, touches no memory and orders nothing."""
    return effects_of(operation) is Effect.NONE
