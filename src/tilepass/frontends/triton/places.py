"""Finding the anchors of a pipeline in one compilation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from tilepass.core.anchor import EVERY, LAST_STAGE, MLIR_STAGES
from tilepass.core.errors import AnchorError, nearest
from tilepass.core.pass_base import Placed


class Places:
    """Where the passes of a pipeline stand in one compilation, found while it goes on.

    `where` says which compilation it is. Gluon kernels skip the stages that most passes are made
    for: with `lenient`, a pass without a place is reported to `skipped`; otherwise it is an
    AnchorError. A compilation that starts from an IR file leaves out the stages before it: a pass
    whose place may have been there is reported too, and so is one whose own place, that nobody
    asked for, is next to a pass that Triton does not run for the target.
    """

    def __init__(
        self,
        passes: Sequence[Placed],
        where: Callable[[], str],
        skipped: Callable[[Placed, str], None],
        *,
        lenient: bool,
    ) -> None:
        self._where = where
        self._skipped = skipped
        self._lenient = lenient
        self._at_stages = [placed for placed in passes if placed.anchor.position in _KNOWN_BY_STAGE]
        self._at_passes = [placed for placed in passes if placed not in self._at_stages]
        self._by_stage: dict[tuple[str, str], list[Placed]] = {}
        self._found: set[int] = set()
        # Triton's passes that ran, by stage, and the stages that do not show theirs.
        self._seen: dict[str, list[str]] = {}
        self._opaque: list[str] = []
        self._runs: Counter[str] = Counter()

    def forked(self) -> Places:
        """The same as far as it has come, for a trial; what has no place is nobody's concern."""
        other = Places((), self._where, _untold, lenient=True)
        other._at_passes, other._by_stage = self._at_passes, self._by_stage
        other._runs = self._runs.copy()
        return other

    @property
    def need_passes(self) -> bool:
        """Whether there are anchors at Triton's passes."""
        return bool(self._at_passes)

    def find_stages(self, stages: Sequence[str]) -> None:
        """Find the passes at stages; report those whose stage is not there or holds no MLIR."""
        known = {
            "start": [name for name in stages if name in (*MLIR_STAGES, LAST_STAGE)],
            "end": [name for name in stages if name in MLIR_STAGES],
        }
        for placed in self._at_stages:
            anchor = placed.anchor
            if anchor.where in known[anchor.position]:
                self._by_stage.setdefault((anchor.position, anchor.where), []).append(placed)
            else:
                places = ", ".join(
                    f"{position}:{name}" for position, names in known.items() for name in names
                )
                self._missing(placed, f"the places at stages are {places}")

    def at_stage(self, position: str, stage: str) -> list[Placed]:
        """The passes at the start or the end of a stage."""
        return self._by_stage.get((position, stage), [])

    def begin(self, stage: str, *, opaque: bool) -> None:
        """A stage begins; an opaque one does not show its passes."""
        self._seen[stage] = []
        if opaque:
            self._opaque.append(stage)

    def among(self, stage: str, triton_passes: Sequence[str]) -> dict[int, list[Placed]]:
        """Which passes stand among the next ones of Triton's, by the index of what follows them."""
        places: dict[int, list[tuple[int, Placed]]] = {}
        for index, name in enumerate(triton_passes):
            for number, placed in enumerate(self._at_passes):
                anchor = placed.anchor
                every = anchor.where == EVERY and stage in MLIR_STAGES
                if every or (anchor.where, anchor.occurrence) == (name, self._runs[name]):
                    place = index + (anchor.position == "after")
                    places.setdefault(place, []).append((number, placed))
                    self._found.add(number)
            self._runs[name] += 1
        self._seen.setdefault(stage, []).extend(triton_passes)
        return {
            place: [placed for _, placed in sorted(found, key=lambda entry: entry[0])]
            for place, found in places.items()
        }

    def check_passes(self) -> None:
        """After the last stage with passes: what has not been found is not there."""
        for (_, stage), at_stage in self._by_stage.items():
            for placed in at_stage if stage not in self._seen else ():
                self._skip(placed, f"the compilation starts after stage '{stage}'")
        for number, placed in enumerate(self._at_passes):
            if number in self._found:
                continue
            own = placed.anchor == placed.instance.anchor and not self._opaque
            if ("ttir" not in self._seen or own) and _is_of_triton(placed.anchor.where):
                self._skip(placed, f"{self._where()} has no place '{placed.anchor}'")
            else:
                self._missing(placed, self._passes_seen(placed.anchor.where))

    def _missing(self, placed: Placed, hint: str) -> None:
        reason = f"{self._where()} has no place '{placed.anchor}'"
        if self._lenient or placed.anchor.optional:
            self._skip(placed, reason)
            return
        raise AnchorError(f"pass '{placed.instance.name}': {reason}; {hint}")

    def _skip(self, placed: Placed, reason: str) -> None:
        if not placed.anchor.optional:
            self._skipped(placed, reason)

    def _passes_seen(self, wanted: str) -> str:
        count = self._runs.get(wanted, 0)
        guess = nearest(wanted, self._runs).removeprefix("; ")
        lines = [f"'{wanted}' runs {count} time(s);" if count else guess]
        lines[0] = f"{lines[0]} the passes that run here are".strip()
        lines += [
            f"  {stage}: {', '.join(_with_counts(names))}"
            for stage, names in self._seen.items()
            if names
        ]
        lines += [
            f"  (stage '{stage}' has been replaced by another hook: its passes cannot be seen)"
            for stage in self._opaque
        ]
        return "\n".join(lines)


_KNOWN_BY_STAGE = ("start", "end")


def _untold(placed: Placed, reason: str) -> None:
    del placed, reason


def _is_of_triton(name: str) -> bool:
    # Here and not above: it runs every pass of Triton once.
    from tilepass.frontends.triton.builtin_passes import discover

    return name in discover()


def _with_counts(names: Sequence[str]) -> list[str]:
    counts = Counter(names)
    return [f"{name} (x{count})" if count > 1 else name for name, count in counts.items()]
