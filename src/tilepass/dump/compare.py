"""Two dumps: after which pass the IR of a kernel first differs, and what became of that."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tilepass.core.errors import TilepassError
from tilepass.dump.diff import unified
from tilepass.dump.steps import COMPILATION_FILE, Step, kernel_folders, read_compilation, read_steps
from tilepass.dump.store import read_text

_FIGURES = "figures.json"
# Of what differs in the figures: the rest follows from these, or names the binary.
_SHOWN = ("registers", "stack_bytes", "spill_store_bytes", "spill_load_bytes", "shared_bytes")


@dataclass(frozen=True)
class First:
    """The first step of both sides after which the IR differs, and a unified diff of the two."""

    left: Step
    right: Step
    ir: str


@dataclass(frozen=True)
class Comparison:
    """A kernel in two dumps, left and right.

    `only_left` and `only_right` are steps that the other side has none for; `first` is None where
    the IR is the same after every step that both have. `figures` maps the name of each that differs
    to the two values.
    """

    kernel: str
    target: str
    only_left: tuple[Step, ...]
    only_right: tuple[Step, ...]
    first: First | None
    figures: Mapping[str, tuple[object, object]]
    same_binary: bool | None

    @property
    def differs(self) -> bool:
        """Whether anything but the binary's name does."""
        return (
            bool(self.first or self.only_left or self.only_right or self.figures)
            or self.same_binary is False
        )


def compare(left: Path, right: Path) -> Iterator[Comparison]:
    """Each kernel that is in both dumps, in the order of `left`; folders of one kernel will do.

    Of several compilations of one kernel for one target the first of each side belong together,
    then the second. Raises TilepassError for a folder that is no dump, and for a kernel that only
    one of them has.
    """
    here, there = _kernels(left), _kernels(right)
    for mine, theirs, dump in ((here, there, right), (there, here, left)):
        for (kernel, target, count), folder in mine.items():
            if (kernel, target, count) not in theirs:
                number = f", compilation {count + 1}" if count else ""
                raise TilepassError(
                    f"{dump} has no {kernel} for {target}{number}, which is in {folder}"
                )
    for name, folder in here.items():
        yield _compared(name[0], name[1], folder, there[name])


def _kernels(dump: Path) -> dict[tuple[str, str, int], Path]:
    folders = [dump] if (dump / COMPILATION_FILE).is_file() else kernel_folders(dump)
    if not folders:
        raise TilepassError(f"{dump}: no dump of `tilepass dump-ir -o`")
    found: dict[tuple[str, str, int], Path] = {}
    # Folders are named by a hash: by their times they come in the order of the compilations.
    for folder in sorted(folders, key=lambda each: (each / COMPILATION_FILE).stat().st_mtime_ns):
        record = read_compilation(folder)
        count = sum(name[:2] == (record.kernel, record.target) for name in found)
        found[record.kernel, record.target, count] = folder
    return found


def _compared(kernel: str, target: str, left: Path, right: Path) -> Comparison:
    mine, theirs = read_steps(left), read_steps(right)
    pairs = list(_pairs(mine, theirs))
    paired = [{pair[side].number for pair in pairs} for side in (0, 1)]
    figures = [_figures(folder) for folder in (left, right)]
    codes = [each.get("code_hash") for each in figures]
    return Comparison(
        kernel,
        target,
        tuple(step for step in mine if step.number not in paired[0]),
        tuple(step for step in theirs if step.number not in paired[1]),
        _first(pairs, _texts(left, mine), _texts(right, theirs)),
        _differing(*figures),
        codes[0] == codes[1] if all(codes) else None,
    )


def _pairs(left: Sequence[Step], right: Sequence[Step]) -> Iterator[tuple[Step, Step]]:
    """Steps that belong together: the same pass or result of the same stage, in order."""
    keys = [[(step.stage, step.name) for step in steps] for steps in (left, right)]
    matcher = difflib.SequenceMatcher(None, *keys, autojunk=False)
    for at, other, size in matcher.get_matching_blocks():
        yield from zip(left[at : at + size], right[other : other + size], strict=True)


def _texts(folder: Path, steps: Sequence[Step]) -> dict[int, Path | None]:
    """The file that shows what each step left: its own, or that of the last one that changed it."""
    found: dict[int, Path | None] = {}
    last: Path | None = None
    for step in steps:
        last = folder / step.file if step.file else last
        found[step.number] = last
    return found


def _first(
    pairs: Sequence[tuple[Step, Step]],
    left: Mapping[int, Path | None],
    right: Mapping[int, Path | None],
) -> First | None:
    for mine, theirs in pairs:
        one, other = left[mine.number], right[theirs.number]
        if one is None or other is None or not (mine.is_mlir and theirs.is_mlir):
            continue
        texts = read_text(one), read_text(other)
        if texts[0] != texts[1]:
            return First(mine, theirs, unified(*texts, str(one), str(other)))
    return None


def _figures(folder: Path) -> dict[str, Any]:
    file = folder / _FIGURES
    return json.loads(read_text(file)) if file.is_file() else {}


def _differing(
    left: Mapping[str, Any], right: Mapping[str, Any]
) -> dict[str, tuple[object, object]]:
    sides = [
        {**{name: each.get(name) for name in _SHOWN}, **each.get("families", {})}
        for each in (left, right)
    ]
    names = dict.fromkeys([*sides[0], *sides[1]])
    values = {name: (sides[0].get(name), sides[1].get(name)) for name in names}
    return {name: pair for name, pair in values.items() if pair[0] != pair[1]}
