"""What each operation does: to values, to memory, and what may reach it in ways that are not known.

An operation that is not listed may store anywhere it can reach.
"""

from __future__ import annotations

import re

from tilepass.analysis.zero_structure import control, ops_gpu, ops_memory, ops_numbers
from tilepass.analysis.zero_structure.machine import Effect, Machine, OutOfReach
from tilepass.analysis.zero_structure.private import Registers
from tilepass.analysis.zero_structure.program import Instruction, Program
from tilepass.analysis.zero_structure.values import Mask, Pointer, Value

EFFECTS: dict[str, Effect] = {**control.CONTROL, **ops_memory.EFFECTS, **ops_gpu.EFFECTS}

# Whole dialects that compute and touch no memory, but for the operations named.
_PURE_DIALECTS = ("arith", "math", "ub", "index", "complex", "vector")
_NOT_PURE = frozenset(
    (
        *("vector.store", "vector.load", "vector.transfer_write", "vector.transfer_read"),
        *("vector.maskedstore", "vector.maskedload", "vector.scatter", "vector.gather"),
        *("vector.compressstore", "vector.expandload", "vector.print"),
    )
)

# Operations that store nothing to memory that the analysis follows.
HARMLESS = frozenset(
    (
        *("nvvm.barrier", "nvvm.barrier0", "nvvm.barrier.arrive", "nvvm.bar.warp.sync"),
        *("nvvm.fence.proxy", "nvvm.fence.mbarrier.init", "nvvm.fence.proxy.acquire"),
        *("nvvm.fence.proxy.release", "nvvm.memory.barrier", "nvvm.fence.sc.cluster"),
        *("nvvm.cluster.arrive", "nvvm.cluster.arrive.relaxed", "nvvm.cluster.wait"),
        *("nvvm.barrier.cta.sync", "nvvm.barrier.cta.arrive", "nvvm.barrier.cta.red"),
        *("nvvm.fence.sync_restrict", "nvvm.fence.proxy.sync_restrict", "nvvm.setmaxregister"),
        *("nvvm.mbarrier.try_wait", "nvvm.mbarrier.try_wait.parity", "nvvm.mbarrier.test_wait"),
        *("nvvm.mbarrier.try_wait.timelimit", "nvvm.mbarrier.try_wait.parity.timelimit"),
        *("nvvm.mbarrier.wait", "nvvm.mbarrier.wait.parity", "nvvm.mbarrier.check.layout"),
        *("nvvm.mbarrier.test_wait.parity", "nvvm.mbarrier.try_wait.parity.shared"),
        *(
            "nvvm.mbarrier.test.wait",
            "nvvm.mbarrier.test.wait.shared",
            "nvvm.mbarrier.try_wait_parity",
        ),
        *("nvvm.prefetch", "nvvm.prefetch.tensormap", "nvvm.pmevent", "nvvm.trace.mark"),
        *("nvvm.load.ext", "nvvm.wmma.load", "nvvm.multimem.ld.reduce"),
        *("nvvm.cp.async.bulk.commit.group", "nvvm.cp.async.bulk.wait_group"),
        *("nvvm.cp.async.commit.group", "nvvm.cp.async.wait.group", "nvvm.exit"),
        *("nvvm.cp.async.bulk.tensor.global.shared.cta", "nvvm.cp.async.bulk.global.shared.cta"),
        *("nvvm.cp.async.bulk.tensor.reduce", "nvvm.cp.async.bulk.prefetch"),
        *("nvvm.applypriority.async.bulk", "nvvm.applypriority.async.bulk.tensor"),
        *("nvvm.cp.async.bulk.tensor.prefetch", "nvvm.griddepcontrol.wait", "nvvm.nanosleep"),
        *("nvvm.griddepcontrol.launch.dependents", "nvvm.griddepcontrol", "nvvm.breakpoint"),
        *("nvvm.wgmma.fence.aligned", "nvvm.wgmma.commit.group.sync.aligned"),
        *("nvvm.wgmma.wait.group.sync.aligned", "nvvm.wgmma.mma_async"),
        *("llvm.intr.assume", "llvm.intr.lifetime.start", "llvm.intr.lifetime.end", "llvm.fence"),
        *("llvm.unreachable", "llvm.intr.trap", "llvm.intr.expect", "gpu.barrier", "cf.assert"),
        *("llvm.intr.maxnum", "llvm.intr.minnum", "llvm.intr.maximum", "llvm.intr.minimum"),
        *("llvm.intr.exp2", "llvm.intr.log2", "llvm.intr.fabs", "llvm.intr.sqrt"),
        *("llvm.intr.nvvm.ldu.global", "llvm.icmp", "llvm.fcmp", "llvm.freeze"),
    )
)
_HARMLESS_PREFIXES = ("nvvm.tcgen05.",)
# Functions that read what they are given and no more.
_HARMLESS_CALLS = frozenset(("printf", "vprintf", "__assertfail", "__assert_fail"))


def pure_of(item: Instruction, program: Program) -> ops_numbers.Pure | None:
    """What computes the results of an instruction from its operands alone, None if nothing does."""
    if item.name == "arith.select" and control.refines(item, program):
        return None
    if item.name in ops_memory.PURE_POINTERS:
        return ops_memory.PURE_POINTERS[item.name]
    if item.name != "arith.mulf":
        return ops_numbers.PURE.get(item.name)
    first, second = (ops_numbers.factor_of(program.definitions.get(x)) for x in item.operands)
    return ops_numbers.product(first, second)


def effect_of(item: Instruction) -> Effect:
    """What interprets an instruction that is not pure."""
    name = item.name
    if name in EFFECTS:
        return EFFECTS[name]
    if item.regions:
        return _refuse
    if name in HARMLESS or name.startswith(_HARMLESS_PREFIXES) or only_computes(name):
        return _nothing
    if name.partition(".")[0] in _PURE_DIALECTS and name not in _NOT_PURE:
        return _nothing
    if name == "llvm.inline_asm" and is_harmless(item.detail):
        return _nothing
    if name == "llvm.call" and item.detail in _HARMLESS_CALLS:
        return _nothing
    return _clobber


def _nothing(
    machine: Machine,
    item: Instruction,
    values: tuple[Value, ...],
    state: Registers,
    mask: Mask,
) -> None:
    return None


def _refuse(
    machine: Machine,
    item: Instruction,
    values: tuple[Value, ...],
    state: Registers,
    mask: Mask,
) -> None:
    raise OutOfReach(f"{item.name} is control flow that is not interpreted", item)


def _clobber(
    machine: Machine,
    item: Instruction,
    values: tuple[Value, ...],
    state: Registers,
    mask: Mask,
) -> None:
    for value in values:
        machine.escape(value)
        if isinstance(value, Pointer) and value.region.kind == "anywhere":
            machine.lose_registers(state)
    if item.name == "llvm.inline_asm":
        reason = f'inline assembly "{item.detail}" may store to shared memory'
    else:
        reason = f"{item.name} may store to shared memory"
    machine.clobber(item, reason)


# Operations of the NVVM dialect that only compute: registers in, registers out. From the dialect of
# nvidia-cutlass-dsl 4.6 to 4.8 and the PTX instructions behind it (PTX ISA 8.7, chapters 9.7.1 to
# 9.7.9 and 9.7.13). Those of one warp that exchange registers are among them. Not here, because
# they may store: `inline_ptx`, `tensormap.replace`, `st.bulk`, `store.*`, `atomicrmw`, `red`,
# `multimem.*`, `clusterlaunchcontrol.try.cancel`, `wmma.store`.
_NVVM_PURE = frozenset(
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
    return dialect == "nvvm" and (rest in _NVVM_PURE or rest.startswith(_FAMILIES))


# PTX instructions without effect on shared or local memory, by the first part of their name. What
# is not listed (st, red, atom, cp.async, mbarrier, mapa, stmatrix, call ...) may store.
_HARMLESS = frozenset(
    (
        *("mov", "cvt", "cvta", "add", "sub", "mul", "mad", "fma", "div", "rem", "neg", "abs"),
        *("min", "max", "ex2", "lg2", "rcp", "rsqrt", "sqrt", "tanh", "sin", "cos", "copysign"),
        *("and", "or", "xor", "not", "cnot", "lop3", "shl", "shr", "shf", "prmt", "bfe", "bfi"),
        *("bfind", "brev", "clz", "popc", "fns", "sad", "mul24", "mad24", "dp4a", "dp2a"),
        *("set", "setp", "selp", "slct", "testp", "szext", "bmsk", "isspacep", "pack", "unpack"),
        *("ld", "ldu", "prefetch", "prefetchu", "applypriority", "discard", "createpolicy"),
        *("shfl", "vote", "match", "activemask", "redux", "elect", "nanosleep", "trap", "exit"),
        *("bar", "barrier", "membar", "fence", "griddepcontrol", "setmaxnreg", "pmevent", "brkpt"),
        *("mma", "bra", "ret", "tcgen05"),
    )
)
# Longer names of instructions whose first part may also name one that stores.
_HARMLESS_LONG = (
    "tensormap.replace.tile.global_address.global.",
    "tensormap.replace.tile.global_dim.global.",
    "tensormap.replace.tile.global_stride.global.",
    "tensormap.replace.tile.box_dim.global.",
    "tensormap.replace.tile.element_stride.global.",
    "cp.async.bulk.commit_group",
    "cp.async.bulk.wait_group",
    "cp.async.commit_group",
    "cp.async.wait_group",
    "cp.async.wait_all",
    "wgmma.fence",
    "wgmma.commit_group",
    "wgmma.wait_group",
    "st.global.",
    "red.global.",
    "atom.global.",
    "mbarrier.try_wait.",
    "mbarrier.test_wait.",
)
# `alloc` stores the address that it got to shared memory.
_TENSOR_MEMORY_FROM_TO_SHARED = ("tcgen05.alloc", "tcgen05.cp")
_LABEL = re.compile(r"^[\w$%]+:\s*")
_PREDICATE = re.compile(r"^@!?%?[\w${}]+\s+")
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_ESCAPE = re.compile(r"\\(?:0[9AaDd]|[nt])")


def is_harmless(text: str) -> bool:
    """Whether every instruction of an assembly text is known to store nothing that matters."""
    plain = _COMMENT.sub(" ", _ESCAPE.sub("\n", text))
    return all(_statement_is_harmless(part) for part in plain.split(";"))


def _statement_is_harmless(statement: str) -> bool:
    words = _strip(statement)
    if not words or words.startswith("."):
        # Declarations of registers; nothing between two separators.
        return True
    name = words.split()[0]
    if name.startswith(_HARMLESS_LONG):
        return True
    head = name.partition(".")[0]
    return head in _HARMLESS and not name.startswith(_TENSOR_MEMORY_FROM_TO_SHARED)


def _strip(statement: str) -> str:
    """A statement without braces of a scope, labels and predicate."""
    words = statement.strip()
    while True:
        shorter = _PREDICATE.sub("", _LABEL.sub("", words.strip("{} \n\t")))
        if shorter == words:
            return words
        words = shorter
