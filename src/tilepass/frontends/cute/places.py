"""Which passes run on CuTe modules, and where."""

from __future__ import annotations

from collections.abc import Iterable

from tilepass.core.anchor import TRACE, Anchor, language_of
from tilepass.core.errors import AnchorError
from tilepass.core.pass_base import Placed

_PLACE = Anchor.end_of(TRACE)


def is_for_cute(placed: Placed) -> bool:
    """Whether a pass runs on CuTe modules; the others run in Triton."""
    return language_of(placed.anchor) == "cute"


def check_places(passes: Iterable[Placed]) -> None:
    """Raise AnchorError for a place that the DSL does not have."""
    for placed in passes:
        if (placed.anchor.position, placed.anchor.where) != (_PLACE.position, _PLACE.where):
            raise AnchorError(
                f"pass '{placed.instance.name}': the CuTe DSL has no place '{placed.anchor}'; its "
                f"place is {_PLACE}"
            )
