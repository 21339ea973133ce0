"""`test-round-trip`: the identity."""

from __future__ import annotations

from tilepass.core.anchor import Anchor
from tilepass.core.pass_base import Pass, PassContext
from tilepass.core.registry import register
from tilepass.ir.engine import Module


@register
class TestRoundTrip(Pass):
    """Take a module to the IR engine and back, changing nothing.

    Before: any module. After: the same module, locations included; the machine code that comes of
    it is the same byte for byte. Refuses nothing. A test of the way that every pass takes; with
    `@after:PASS` at any place of the pipeline.
    """

    # Not a test class, whatever pytest makes of the name.
    __test__ = False

    name = "test-round-trip"
    anchor = Anchor.end_of("ttir")

    def run(self, module: Module, context: PassContext) -> None:
        del module, context
