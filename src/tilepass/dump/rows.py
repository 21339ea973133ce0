"""Two texts side by side: which line stands beside which."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from tilepass.dump.diff import Block, align
from tilepass.dump.ir_text import essence

RowKind = Literal["same", "renumbered", "changed", "removed", "added"]
QUIET: tuple[RowKind, ...] = ("same", "renumbered")
# Lines of a replaced block are paired by likeness if the block is at most this large (product of
# the two sides' lengths), one under the other otherwise.
_PAIRING_LIMIT = 2500
_LIKE = 0.5
_WORD = re.compile(r"[\w.]+")


@dataclass(frozen=True)
class Row:
    """A line of either side or of both; indices count from 0. `renumbered` lines differ only in
    the numbers of values and in indentation."""

    kind: RowKind
    left: int | None
    right: int | None


@dataclass(frozen=True)
class Gap:
    """`count` rows that are not shown: quiet ones, or too many (`loud`)."""

    count: int
    loud: bool = False


def side_by_side(left: Sequence[str], right: Sequence[str]) -> list[Row]:
    """Rows that show every line of both texts once, in order."""
    rows: list[Row] = []
    for block in align(left, right):
        rows += _equal_rows(block, left, right) if block.equal else _other_rows(block, left, right)
    return rows


def fold(rows: Sequence[Row], context: int, limit: int) -> list[Row | Gap]:
    """The rows with something new and `context` rows around them, at most `limit`."""
    shown = _near_changes(rows, context)
    folded: list[Row | Gap] = []
    hidden = 0
    for number, row in enumerate(rows):
        if number not in shown:
            hidden += 1
            continue
        if len(folded) >= limit:
            folded.append(Gap(len(rows) - number + hidden, loud=True))
            return folded
        if hidden:
            folded.append(Gap(hidden))
            hidden = 0
        folded.append(row)
    if hidden:
        folded.append(Gap(hidden))
    return folded


def counts(rows: Iterable[Row]) -> tuple[int, int]:
    """(lines removed or changed, lines added or changed); renumbering does not count."""
    loud = [row for row in rows if row.kind not in QUIET]
    return sum(row.left is not None for row in loud), sum(row.right is not None for row in loud)


def _equal_rows(block: Block, left: Sequence[str], right: Sequence[str]) -> list[Row]:
    rows: list[Row] = []
    for offset in range(block.left_end - block.left):
        a, b = block.left + offset, block.right + offset
        rows.append(Row("same" if left[a] == right[b] else "renumbered", a, b))
    return rows


def _other_rows(block: Block, left: Sequence[str], right: Sequence[str]) -> list[Row]:
    rows: list[Row] = []
    a, b = block.left, block.right
    for pair in [*_pairs(block, left, right), (block.left_end, block.right_end)]:
        rows += [Row("removed", index, None) for index in range(a, pair[0])]
        rows += [Row("added", None, index) for index in range(b, pair[1])]
        if pair != (block.left_end, block.right_end):
            rows.append(Row("changed", *pair))
        a, b = pair[0] + 1, pair[1] + 1
    return rows


def _pairs(block: Block, left: Sequence[str], right: Sequence[str]) -> list[tuple[int, int]]:
    """The alignment of a block's lines with the greatest total likeness (dynamic programming)."""
    height, width = block.left_end - block.left, block.right_end - block.right
    if height * width == 0 or height * width > _PAIRING_LIMIT:
        return []
    a = [_words(left[block.left + row]) for row in range(height)]
    b = [_words(right[block.right + column]) for column in range(width)]
    likeness = [[_likeness(x, y) for y in b] for x in a]
    best = [[0.0] * (width + 1) for _ in range(height + 1)]
    for row in reversed(range(height)):
        for column in reversed(range(width)):
            best[row][column] = max(
                best[row + 1][column],
                best[row][column + 1],
                likeness[row][column] + best[row + 1][column + 1],
            )
    pairs: list[tuple[int, int]] = []
    row = column = 0
    while row < height and column < width:
        if best[row][column] == best[row + 1][column]:
            row += 1
        elif best[row][column] == best[row][column + 1]:
            column += 1
        else:
            pairs.append((block.left + row, block.right + column))
            row, column = row + 1, column + 1
    return pairs


def _words(line: str) -> frozenset[str]:
    return frozenset(_WORD.findall(essence(line)))


def _likeness(left: frozenset[str], right: frozenset[str]) -> float:
    """Shared words over all words (Jaccard), 0 where they share less than half."""
    union = len(left | right)
    share = len(left & right) / union if union else 0.0
    return share if share >= _LIKE else 0.0


def _near_changes(rows: Sequence[Row], context: int) -> set[int]:
    shown: set[int] = set()
    for number, row in enumerate(rows):
        if row.kind not in QUIET:
            shown.update(range(max(0, number - context), min(len(rows), number + context + 1)))
    return shown
