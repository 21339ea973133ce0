"""Triton's part in putting a pipeline in force."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from tilepass.after_import import AfterImport
from tilepass.core.pass_base import Pass, PassContext, Placed, Target
from tilepass.frontends.cache_key import pipeline_key

if TYPE_CHECKING:
    from tilepass.frontends.observing import StageObserver
    from tilepass.frontends.triton.hook import Level
    from tilepass.frontends.triton.validation import Validator

MakeContext = Callable[[Pass, Target, Mapping[str, object]], PassContext]
_HOOK = "tilepass.frontends.triton.hook"


class TritonPart:
    """The passes of a pipeline that run in Triton, to be put in force any number of times."""

    def __init__(
        self,
        passes: Sequence[Placed],
        observers: Sequence[StageObserver],
        validator: Validator | None,
        *,
        required: bool,
    ) -> None:
        self.key = pipeline_key(passes)
        self._passes = tuple(passes)
        self._observers = tuple(observers)
        self._validator = validator
        self._required = required
        self._entered: list[_Entered] = []

    def enter(
        self,
        make_context: MakeContext,
        skipped: Callable[[Placed, str], None],
        *,
        of_environment: bool,
    ) -> None:
        """Put the passes in force, where need be when the program imports Triton."""

        def make_level() -> Level:
            from tilepass.frontends.triton.hook import Level
            from tilepass.frontends.triton.segments import Plan

            plan = Plan(self._passes, self._observers, make_context, skipped, self._validator)
            return Level(plan, self.key, of_environment)

        self._entered.append(_Entered(make_level))
        if self._is_needed_now(of_environment):
            # Before the hook's module, which would be found half imported by what waits for Triton.
            importlib.import_module("triton")
            self._entered[-1].push()
        elif self._required or self._observers:
            self._entered[-1].push_later()

    def exit(self) -> None:
        """Take the passes out of force."""
        self._entered.pop().end()

    def _is_needed_now(self, of_environment: bool) -> bool:
        # Without passes for Triton, those that are in force must give way all the same.
        if _HOOK in sys.modules or "triton" in sys.modules:
            return self._required or bool(self._observers) or _HOOK in sys.modules
        return self._required and not of_environment


class _Entered:
    """One entered block: a level that is in force, or that will be."""

    def __init__(self, make_level: Callable[[], Level]) -> None:
        self._make_level = make_level
        self._level: Level | None = None
        self._waiting: AfterImport | None = None

    def push(self) -> None:
        from tilepass.frontends.triton import hook

        self._level = self._make_level()
        hook.push(self._level)

    def push_later(self) -> None:
        self._waiting = AfterImport("triton", self.push)

    def end(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
        if self._level is not None:
            from tilepass.frontends.triton import hook

            hook.pop(self._level)
