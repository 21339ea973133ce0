"""`cute-vectorize-copies`: copy between registers and memory by vectors instead of elements."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tilepass.core.anchor import Anchor
from tilepass.core.diagnostics import SourceLocation
from tilepass.core.errors import OptionError
from tilepass.core.pass_base import Pass, PassContext
from tilepass.core.refusal import Refusal, attempt
from tilepass.core.registry import register
from tilepass.ir import engine
from tilepass.ir.engine import Module
from tilepass.ir.loops import Loop, loops_in
from tilepass.passes.cute.cute_vectorize_copies.copy_loops import (
    CopyLoop,
    copy_loop,
    counted,
    emit_vectors,
)

_SIZES = (2, 4, 8, 16)


@register
class CuteVectorizeCopies(Pass):
    """Replace loops that copy element by element by vector loads and stores.

    Before (64 fp32 of a thread's accumulator, two neighbours in memory side by side):
        scf.for %i = 0 to 64 { %c = coordinates[%i]; %x = load registers[%i]; store memory[%c], %x }
    After (32 times, of 8 bytes each):
        %x = cute.memref.load_vec(%part) : vector<2xf32>; cute.memref.store_vec(%x, %place)

    The compiler cannot do it: it no longer knows the alignment that CuTe's types state. Each vector
    is as wide as both sides allow, and at most `bytes`.

    Sound where the types are right: the alignment of the tensor's pointer, and the divisors of its
    coordinates. The elements of a vector are then all read before one of them is written, which
    nothing can see, since one side are registers.

    Refuses loops that do anything else, number of elements or layouts that are not constants, and
    coordinates that do not come from one coordinate tensor.
    """

    name = "cute-vectorize-copies"
    anchor = Anchor.end_of("trace")
    touches = ("cute.memref.store",)

    @dataclass(frozen=True)
    class Options:
        bytes: int = 16

    options: Options

    def run(self, module: Module, context: PassContext) -> None:
        """Match every loop, then rewrite those that can be."""
        most = self.options.bytes
        if most not in _SIZES:
            raise OptionError(f"bytes={most}: vectors have 2, 4, 8 or 16 bytes")
        for place, copy in list(_copy_loops(module)):
            if isinstance(copy, Refusal):
                context.refuse(copy, "copy loop")
                continue
            width = copy.width(most)
            if width == 1:
                context.refuse(Refusal(place, copy.obstacle(most)), str(copy))
                continue
            emit_vectors(copy, width)
            size = width * copy.source.tensor.bits // 8
            vectors = counted(copy.count // width, "vector")
            context.remarks.passed(place, f"{copy}: {vectors} of {size} bytes")


def vectorizable(module: Module) -> Iterator[tuple[SourceLocation | None, CopyLoop]]:
    """The copy loops that the pass would rewrite, with their places in the source."""
    for place, copy in _copy_loops(module):
        if isinstance(copy, CopyLoop) and copy.width(max(_SIZES)) > 1:
            yield place, copy


def _copy_loops(module: Module) -> Iterator[tuple[SourceLocation | None, CopyLoop | Refusal]]:
    for loop in loops_in(module):
        place = _location(loop)
        copy = attempt(copy_loop, loop, at=place)
        if copy is not None:
            yield place, Refusal(place, copy) if isinstance(copy, str) else copy


def _location(loop: Loop) -> SourceLocation | None:
    """Where a loop stands in the source: it may have no location of its own."""
    body = (each.operation for each in loop.body.operations)
    return next(filter(None, map(engine.location_of, (loop.operation, *body))), None)
