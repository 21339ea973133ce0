"""Which passes run on CuTe modules, and where."""

from __future__ import annotations

from collections.abc import Iterable

from tilepass.core.anchor import Anchor
from tilepass.core.errors import AnchorError
from tilepass.frontends.placed import Placed

# The one stage of the DSL: from Python to the module that its compiler is given.
STAGE = "trace"
_PLACE = Anchor.end_of(STAGE)


def is_for_cute(placed: Placed) -> bool:
    """Whether a pass runs on CuTe modules; the others run in Triton."""
    return placed.anchor.where == STAGE


def check_places(passes: Iterable[Placed]) -> None:
    """Raise AnchorError for a place that the DSL does not have."""
    for placed in passes:
        if (placed.anchor.position, placed.anchor.where) != (_PLACE.position, _PLACE.where):
            raise AnchorError(
                f"pass '{placed.instance.name}': the CuTe DSL has no place '{placed.anchor}'; its "
                f"place is {_PLACE}"
            )
