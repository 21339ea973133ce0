"""What builders need to know beside the nest and the plan."""

from __future__ import annotations

from dataclasses import dataclass

from tilepass.ir.build_async import AsyncBuilder
from tilepass.ir.engine import ir
from tilepass.passes.triton.epilogue_warp_specialize.budget import Limits
from tilepass.passes.triton.epilogue_warp_specialize.description import PersistentNest


@dataclass(frozen=True)
class Machine:
    """The Triton that reads what is built, and what the target has for one program."""

    triton_version: tuple[int, ...]
    limits: Limits

    def builder_before(self, nest: PersistentNest) -> AsyncBuilder:
        """A builder in front of the tile loop."""
        outer = nest.outer.operation
        return AsyncBuilder(ir.InsertionPoint(outer), outer.location, self.triton_version)
