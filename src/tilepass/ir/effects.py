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
    """Anything else that must neither move nor vanish: prints, asserts, calls, unknown."""


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
    gpu="block_id block_dim grid_dim thread_id",
    tt=(
        "addptr advance bitcast broadcast cat clampf descriptor_ref dot dot_scaled "
        "expand_dims fp_to_fp gather get_num_programs get_program_id histogram int_to_ptr "
        "join make_range make_tensor_descriptor make_tensor_ptr map_elementwise "
        "map_elementwise.return mulhiui precise_divf precise_sqrt ptr_to_int reduce "
        "reduce.return reshape return scan scan.return splat split trans unsplat"
    ),
    ttg=(
        "async_commit_group convert_layout fp4_to_fp global_scratch_alloc mask "
        "mask.return memdesc_index memdesc_reinterpret memdesc_reshape memdesc_subslice "
        "memdesc_trans predicate_stage warp_id warp_return warp_yield"
    ),
    ttng="tensormap_create_view tmem_subslice cluster_id cluster_size_1d",
)

_READ = _named(
    tt="load descriptor_load descriptor_gather",
    ttg="local_load local_gather",
    ttng="tmem_load",
)

_WRITE = _named(
    tt="store descriptor_store descriptor_scatter descriptor_reduce",
    ttg="local_store local_scatter local_alloc local_dealloc",
    ttng="tmem_alloc tmem_store tensormap_create",
)

_READ_WRITE = _named(
    tt="atomic_rmw atomic_cas",
    ttg="async_copy_global_to_local",
    ttng=(
        "async_tma_copy_global_to_local async_tma_copy_local_to_global async_tma_gather "
        "async_tma_scatter async_tma_reduce tmem_copy warp_group_dot tc_gen5_mma "
        "tc_gen5_mma_scaled"
    ),
)

_SYNC = _named(
    gpu="barrier",
    ttg="barrier local_barrier async_wait",
    nvvm="barrier0 barrier",
    ttng=(
        "init_barrier inval_barrier barrier_expect wait_barrier arrive_barrier "
        "async_copy_mbarrier_arrive fence_async_shared fence cluster_arrive cluster_wait "
        "async_tma_store_wait warp_group_dot_wait tc_gen5_commit "
        "tensormap_fenceproxy_acquire"
    ),
)


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
        return Effect.READ | (Effect.OTHER if _is_volatile(operation) else Effect.NONE)
    if name in _WRITE:
        return Effect.WRITE
    if name in _READ_WRITE:
        return Effect.READ | Effect.WRITE
    if name in _SYNC:
        return Effect.SYNC
    if name == "tt.elementwise_inline_asm":
        return Effect.NONE if _flag(operation, "pure") else Effect.OTHER
    if name == "tt.extern_elementwise":
        return Effect.NONE if _flag(operation, "pure") else Effect.OTHER
    return Effect.OTHER


def _is_volatile(operation: ir.Operation) -> bool:
    return _flag(operation, "isVolatile")


def _flag(operation: ir.Operation, name: str) -> bool:
    attribute = operation.attributes.get(name)
    return isinstance(attribute, ir.BoolAttr) and attribute.value


def effects_inside(block: ir.Block) -> Effect:
    """The effects of all operations of a block."""
    effects = Effect.NONE
    for operation in block:
        effects |= effects_of(operation)
    return effects


def is_pure(operation: ir.OpView | ir.Operation) -> bool:
    """Whether the operation, regions included, touches no memory and orders nothing."""
    return effects_of(operation) is Effect.NONE
