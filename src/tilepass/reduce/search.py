"""Delta debugging over the edits: chunks of a kind's sites, halved where none can be dropped."""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from tilepass.core.errors import ParseError, TilepassError
from tilepass.ir import engine
from tilepass.ir.engine import Module
from tilepass.ir.values import plain_values
from tilepass.reduce.edits import KINDS, CannotEdit, Kind, dimensions, tidy, with_dimension
from tilepass.reduce.trial import Command, Failing, Run, require_failure

Print = Callable[[Module], str]
"""A module as the text that the command reads. Raises TilepassError where it does not verify."""


@dataclass
class Reduction:
    """A module on its way to be small.

    `keep` is called with each smaller text on which the command fails; `tried` holds the digests
    of those on which it does not. With both kept, a search that was ended goes on where it was.
    """

    module: Module
    command: Command
    failing: Failing
    print: Print
    folder: Path
    keep: Callable[[str], None]
    tried: set[str] = field(default_factory=set[str])
    jobs: int = os.cpu_count() or 1
    runs: int = 0

    def run(self) -> None:
        """Try all kinds of edits until none of them leads further."""
        before, tidies = "", True
        while before != (before := engine.print_generic(self.module)):
            # What nobody uses may be what the command fails on.
            tidies = tidies and self._is_tidy()
            for kind in KINDS:
                self._shrink(kind, tidies and kind.tidies)
            self._shrink_dimensions()

    def _is_tidy(self) -> bool:
        """Whether the module holds nothing that nobody uses, or can go on without it."""
        tidied = engine.copied(self.module)
        tidy(tidied)
        if _digest(tidied) == _digest(self.module):
            return True
        return self._first_failing([tidied]) is not None

    def _shrink(self, kind: Kind, tidies: bool) -> None:
        start, count = 0, len(kind.find(self.module))
        chunk = count
        while chunk:
            places = range(start, count, chunk)
            at = self._first_failing(self._edited(kind, place, chunk, tidies) for place in places)
            if at is None:
                start, chunk = 0, chunk // 2
                continue
            # What is before has been tried; what was there has gone.
            start, count = places[at], len(kind.find(self.module))
            chunk = min(chunk, count)

    def _edited(self, kind: Kind, start: int, count: int, tidies: bool) -> Module | None:
        """The module changed at some sites; None where that is no module or changes nothing."""
        module = engine.copied(self.module)
        # From the last to the first, so that no site is in what has been erased.
        for apply in reversed(kind.find(module)[start : start + count]):
            with contextlib.suppress(CannotEdit):
                apply()
        if tidies:
            tidy(module)
        return module if not engine.verify(module) else None

    def _shrink_dimensions(self) -> None:
        for old in dimensions(engine.print_generic(self.module)):
            for new in dict.fromkeys((16, old // 2)):
                smaller = with_dimension(engine.print_generic(self.module), old, new)
                if self._first_failing([_parsed(smaller)]) is not None:
                    break

    def _first_failing(self, candidates: Iterable[Module | None]) -> int | None:
        """Go on with the first candidate on which the command fails as before; its number."""
        waiting, under_way = enumerate(candidates), deque[tuple[int, Module, str, Run]]()
        try:
            while True:
                while len(under_way) < self.jobs and (following := next(waiting, None)):
                    at, module = following
                    digest = _digest(module) if module else ""
                    if module and digest not in self.tried:
                        self.tried.add(digest)
                        under_way.append((at, module, digest, self._start(module)))
                if not under_way:
                    return None
                at, module, _, run = under_way[0]
                failing = run.result()
                self.runs += 1
                under_way.popleft()
                if failing == self.failing:
                    self.module = module
                    self.keep(run.text())
                    return at
                run.remove()
        finally:
            for *_, digest, run in under_way:
                # Not known to pass: it was not waited for.
                run.stop()
                run.remove()
                self.tried.discard(digest)

    def _start(self, module: Module) -> Run:
        return self.command.start(lambda: self.print(module), self.folder)


def _digest(module: Module) -> str:
    """Of a module without its locations, which are others once its text has been read again."""
    text = engine.print_readable(module, locations=False, generic=True)
    return hashlib.sha256(text.encode()).hexdigest()[:24]


def _parsed(text: str) -> Module | None:
    try:
        return engine.parse(text)
    except ParseError:
        return None


@plain_values()
def reduce(
    module: Module,
    text: str,
    command: Command,
    printed: Print,
    keep: Callable[[str], None],
    tried: set[str],
    jobs: int = os.cpu_count() or 1,
) -> Reduction:
    """Make a module small while the command fails on it as it does on `text`; `keep` is called
    with the module's own text first.

    Raises TilepassError where the command does not fail on that.
    """
    with tempfile.TemporaryDirectory(prefix="tilepass-reduce-") as name:
        folder = Path(name)
        failing = require_failure(command, text, folder)
        whole = printed(module)
        if require_failure(command, whole, folder) != failing:
            raise TilepassError("the command fails otherwise on the module as it is printed")
        keep(whole)
        search = Reduction(module, command, failing, printed, folder, keep, tried, jobs)
        search.tried.add(_digest(module))
        search.run()
    return search
