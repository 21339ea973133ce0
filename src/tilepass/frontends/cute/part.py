"""The CuTe DSL's part in putting a pipeline in force."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from tilepass.core.anchor import TRACE, Anchor, language_of
from tilepass.core.errors import AnchorError
from tilepass.core.pass_base import BinaryFigures, Pass, PassContext, Placed, Target
from tilepass.core.remarks import Remark
from tilepass.frontends.cache_key import pipeline_key

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


if TYPE_CHECKING:
    from tilepass.frontends.cute.hook import Level
    from tilepass.frontends.observing import StageObserver
    from tilepass.ir.engine import Module

MakeContext = Callable[[Pass, Target, Mapping[str, object]], PassContext]
_HOOK = "tilepass.frontends.cute.hook"


class CutePart:
    """The passes of a pipeline that run on CuTe modules, to be put in force any number of times.

    Raises UnsupportedVersionError where there are passes and the DSL is too old for them, and
    AnchorError for a pass at a place that there is not.
    """

    def __init__(
        self,
        passes: Sequence[Placed],
        observers: Sequence[StageObserver],
        make_trial: Callable[[str, Target], Callable[[Module], BinaryFigures]],
    ) -> None:
        if passes:
            from tilepass.core.versions import cute_version

            cute_version()
        check_places(passes)
        self._passes = tuple(passes)
        self._observers = tuple(observers)
        self._make_trial = make_trial
        self._entered: list[Level | None] = []

    def enter(
        self,
        make_context: MakeContext,
        hear: Callable[[Remark], None],
        *,
        of_environment: bool,
    ) -> None:
        """Put the passes in force, where need be when the program imports the DSL."""
        if not (self._passes or self._observers or _HOOK in sys.modules):
            # Nothing to do, and nothing of an outer block to take back.
            self._entered.append(None)
            return
        from tilepass.frontends.cute import hook

        key = pipeline_key(self._passes).key
        level = hook.Level(
            self._passes,
            self._observers,
            key,
            hear,
            make_context,
            self._make_trial,
            of_environment,
        )
        hook.push(level)
        self._entered.append(level)

    def exit(self) -> None:
        """Take the passes out of force."""
        level = self._entered.pop()
        if level is not None:
            from tilepass.frontends.cute import hook

            hook.pop(level)
