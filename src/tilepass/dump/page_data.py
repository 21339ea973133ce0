"""What the page of a kernel shows, as data: rows of differences, listings, remarks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilepass.dump.fragments import Fragments
from tilepass.dump.ir_text import lines_of
from tilepass.dump.report import KernelReport, mlir_changes
from tilepass.dump.rows import Gap, Row, RowKind, counts, fold, side_by_side
from tilepass.dump.steps import Step
from tilepass.dump.store import read_text

CONTEXT = 3
"""Lines shown around a change."""
MOST_ROWS = 500
"""Rows shown of one difference."""
LONGEST_LISTING = 300_000
"""Characters of a file that is shown whole; of a longer one the page names the file."""
LARGEST_TABLE = 12_000_000
"""Characters of highlighted lines after which no further file is shown whole."""

ROW_CODES: tuple[RowKind, ...] = ("same", "renumbered", "changed", "removed", "added")
GAP_CODE = len(ROW_CODES)


def page_data(report: KernelReport) -> dict[str, Any]:
    """`lines` is a table of HTML fragments; `steps` refer to them by index.

    A step's `rows` are `[code, left line, left fragment, right line, right fragment]` with lines
    from 1 and 0 for no line (see ROW_CODES), or `[GAP_CODE, rows left out, whether loud]`; its
    `text` is a list of fragments, or None where the file is too long.
    """
    fragments = Fragments()
    before = {step.number: earlier for earlier, step in mlir_changes(report.folder, report.steps)}
    steps = [_step_data(report, step, before.get(step.number), fragments) for step in report.steps]
    return {"lines": fragments.table, "steps": steps}


def _step_data(
    report: KernelReport, step: Step, before: Step | None, fragments: Fragments
) -> dict[str, Any]:
    lines = _lines(report, step)
    data: dict[str, Any] = {
        "number": step.number,
        "stage": step.stage,
        "name": step.name,
        "origin": step.origin,
        "pass": step.pass_text,
        "changed": step.changed,
        "file": step.file,
        "remarks": step.remarks,
        "decisions": step.decisions,
        "before": before.file if before else None,
        "rows": None,
        "text": _listing(step, lines, fragments),
    }
    if before is not None:
        rows = side_by_side(_lines(report, before), lines)
        data["removed"], data["added"] = counts(rows)
        data["rows"] = _encode(rows, _lines(report, before), lines, _suffix(step), fragments)
    return data


def _lines(report: KernelReport, step: Step) -> list[str]:
    if step.file is None or step.file.endswith((".cubin", ".hsaco")):
        return []
    return lines_of(read_text(report.folder / step.file))


def _suffix(step: Step) -> str:
    return "." + (step.file or "").rpartition(".")[2]


def _listing(step: Step, lines: Sequence[str], fragments: Fragments) -> list[int] | None:
    if sum(map(len, lines)) > LONGEST_LISTING or fragments.size > LARGEST_TABLE:
        return None
    return [fragments.line(line, _suffix(step)) for line in lines]


def _encode(
    rows: Sequence[Row],
    left: Sequence[str],
    right: Sequence[str],
    suffix: str,
    fragments: Fragments,
) -> list[list[int]]:
    encoded: list[list[int]] = []
    for row in fold(rows, CONTEXT, MOST_ROWS):
        if isinstance(row, Gap):
            encoded.append([GAP_CODE, row.count, int(row.loud)])
            continue
        a = None if row.left is None else left[row.left]
        b = None if row.right is None else right[row.right]
        if row.kind == "changed" and a is not None and b is not None:
            places = fragments.pair(a, b, suffix)
        else:
            places = tuple(0 if text is None else fragments.line(text, suffix) for text in (a, b))
        encoded.append(
            [
                ROW_CODES.index(row.kind),
                0 if row.left is None else row.left + 1,
                places[0],
                0 if row.right is None else row.right + 1,
                places[1],
            ]
        )
    return encoded
