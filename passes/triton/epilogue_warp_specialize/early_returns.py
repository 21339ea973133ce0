"""The blocks in front of a tile loop in kernels that may return early.

^bb0:                                   // if M == 0 or N == 0: return
  cf.cond_br %empty, ^bb1, ^bb2
^bb1:
  tt.return
^bb2:
  scf.for %tile = ... { ... }
  tt.return

What is specialized stays in its block. Up to `ttg.warp_specialize` the other warps wait for what
the default warps tell them, and every return of the kernel, an early one too, tells them to exit
first (ConvertWarpSpecializeToLLVM, Triton 3.6 to 3.9).
"""

from __future__ import annotations

from tilepass.ir.engine import Operation, ir
from tilepass.passes.triton.epilogue_warp_specialize.description import Refusal

_RETURN, _BRANCH = "tt.return", "cf.cond_br"


def early_return_obstacle(loop: Operation) -> Refusal | None:
    """Why the kernel reaches a loop of its own block otherwise than past branches that return, and
    leaves it otherwise than to its end."""
    way = way_to(loop.block)
    if way is None:
        return Refusal(
            loop,
            "a branch in front of the tile loop does not lead to a return alone",
            "do nothing else where the kernel returns early",
        )
    if any(len(block.arguments) for block in way[1:]):
        return Refusal(loop, "a branch in front of the tile loop hands values on")
    last = _terminator(loop.block)
    if last.name != _RETURN:
        return Refusal(last, "the kernel branches behind the tile loop")
    return None


def way_to(wanted: ir.Block) -> list[ir.Block] | None:
    """The blocks of a kernel that run up to and including `wanted`, in this order; None where a
    branch on the way has another way out than a block that only returns."""
    way = [wanted.region.blocks[0]]
    while way[-1] != wanted:
        last = _terminator(way[-1])
        onward = [block for block in last.successors if not _only_returns(block)]
        if last.name != _BRANCH or len(onward) != 1 or onward[0] in way:
            return None
        way.append(onward[0])
    return way


def _only_returns(block: ir.Block) -> bool:
    return [view.operation.name for view in block] == [_RETURN]


def _terminator(block: ir.Block) -> Operation:
    return block.operations[len(block.operations) - 1].operation
