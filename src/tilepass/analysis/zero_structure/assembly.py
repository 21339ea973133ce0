"""Which inline assembly stores nothing to memory that the analysis follows."""

from __future__ import annotations

import re

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
