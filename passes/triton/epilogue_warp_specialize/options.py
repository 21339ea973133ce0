"""The options of the pass, and the plan that they and the budgets end in."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Literal

from tilepass.core.errors import OptionError

SchemeName = Literal["cooperative", "ping-pong", "split-consumer"]
Subtiles = Literal[1, 2, 4]


@dataclass(frozen=True)
class Options:
    """What a user may ask for. `auto` leaves it to the cost model and the budgets.

    `stages` is the number of slots for the operands of the dot, `c_buffers` the number of staging
    buffers that each TMA store has in each consumer, `epilogue_subtile` the number of pieces
    along N in which the epilogue goes through them, `late_subtiles` how many of them wait in
    registers until the next tile's first dot is issued (all of them TMA stores, in `split-consumer`
    and `cooperative`). `alternate_epilogues` is for `split-consumer`.
    """

    scheme: Literal["auto", "none", "cooperative", "ping-pong", "split-consumer"] = "auto"
    stages: Literal["auto"] | int = "auto"
    c_buffers: Literal["auto"] | int = "auto"
    epilogue_subtile: Literal["auto", 1, 2, 4] = "auto"
    late_subtiles: Literal["auto", 0, 1, 2] = "auto"
    alternate_epilogues: Literal["auto", "true", "false"] = "auto"

    def __post_init__(self) -> None:
        """Raises OptionError for what no scheme can be built with."""
        for name, value, fewest in (
            ("stages", self.stages, 2),
            ("c-buffers", self.c_buffers, 1),
        ):
            if isinstance(value, int) and value < fewest:
                raise OptionError(
                    f"pass 'epilogue-warp-specialize', option '{name}': {value} is too few, "
                    f"{fewest} is the least"
                )
        if self.alternate_epilogues == "true" and self.scheme not in ("auto", "split-consumer"):
            raise OptionError(
                "pass 'epilogue-warp-specialize', option 'alternate-epilogues': it is for "
                f"scheme=split-consumer, not {self.scheme}"
            )

    def asked_for(self) -> dict[str, object]:
        """By the name of its field, each number that is not left open."""
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        return {
            name: value for name, value in values.items() if name != "scheme" and value != "auto"
        }


@dataclass(frozen=True)
class Plan:
    """What is built: the scheme and its numbers, all of them decided."""

    scheme: SchemeName
    stages: int
    c_buffers: int = 1
    epilogue_subtile: Subtiles = 1
    late_subtiles: int = 0
    alternate_epilogues: bool = False

    def __str__(self) -> str:
        pieces = f", {self.epilogue_subtile} subtiles" if self.epilogue_subtile > 1 else ""
        pieces += f", {self.late_subtiles} of them late" if self.late_subtiles else ""
        pieces += ", alternating" if self.alternate_epilogues else ""
        return f"{self.scheme}, {self.stages} stages, {self.c_buffers} C buffers{pieces}"
