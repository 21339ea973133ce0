"""The pages: nothing from the network, and all of both sides of every difference."""

from __future__ import annotations

import html
import json
import re
from functools import cache
from pathlib import Path
from typing import Any

from dump_support import finished_dump

from tilepass.dump.fragments import LONGEST_LINE
from tilepass.dump.html import write_pages
from tilepass.dump.page_data import GAP_CODE, ROW_CODES
from tilepass.dump.report import KernelReport, mlir_changes
from tilepass.dump.store import write_file


@cache
def page() -> str:
    _, report = finished_dump()
    return (report.folder / "index.html").read_text()


@cache
def data() -> dict[str, Any]:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page(), re.S)
    assert found
    return json.loads(found[1])


def plain(fragment: int) -> str:
    """The text that a reader sees of a highlighted line."""
    return html.unescape(re.sub(r"</?i[^>]*>", "", data()["lines"][fragment]))


def shown(line: str) -> str:
    """A line of a file as the page shows it."""
    rest = len(line) - LONGEST_LINE
    return line if rest <= 0 else f"{line[:LONGEST_LINE]} … {rest} more characters"


def test_pages_need_no_other_file_and_no_network() -> None:
    dump, _ = finished_dump()
    for text in (page(), (dump / "index.html").read_text()):
        assert not re.search(r"""(?:src|href)\s*=\s*["']?(?:https?:)?//""", text)
        assert not re.search(r"<(?:link|img|iframe|script[^>]+src)\b", text)
        assert "@import" not in text
        assert "url(" not in text
        # The scripts fetch nothing either.
        assert not re.search(r"\b(?:fetch\(|XMLHttpRequest|import\()", text)


def test_the_overview_links_to_pages_that_are_there() -> None:
    dump, report = finished_dump()
    links = re.findall(r'href="([^"#]+)"', (dump / "index.html").read_text())
    assert links == [f"{report.name}/index.html"]
    assert all((dump / link).is_file() for link in links)


def test_both_sides_of_each_difference_can_be_read_off_the_page() -> None:
    _, report = finished_dump()
    before = {step.number: earlier for earlier, step in mlir_changes(report.folder, report.steps)}
    compared = 0
    for step in data()["steps"]:
        if step["rows"] is None:
            assert step["number"] not in before
            continue
        left_file, right_file = before[step["number"]].file, step["file"]
        assert step["before"] == left_file
        left = (report.folder / str(left_file)).read_text().split("\n")[:-1]
        right = (report.folder / right_file).read_text().split("\n")[:-1]
        assert_rows_rebuild(step["rows"], left, right)
        compared += 1
    assert compared == len(before) > 20


def assert_rows_rebuild(rows: list[list[int]], left: list[str], right: list[str]) -> None:
    """Shown lines are the files' lines in order; hidden ones are the lines in between."""
    at = other_at = 1
    hidden = 0
    for row in rows:
        if row[0] == GAP_CODE:
            hidden = row[1]
            assert hidden > 0
            if row[2]:
                return
            continue
        code, line, fragment, other, other_fragment = row
        for number, expected in ((line, at), (other, other_at)):
            assert number in (0, expected + hidden)
        at, other_at, hidden = at + hidden, other_at + hidden, 0
        if line:
            assert plain(fragment) == shown(left[line - 1])
            at += 1
        if other:
            assert plain(other_fragment) == shown(right[other - 1])
            other_at += 1
        if ROW_CODES[code] == "same":
            assert left[line - 1] == right[other - 1]
    assert (at + hidden, other_at + hidden) == (len(left) + 1, len(right) + 1)


def test_whole_texts_are_whole() -> None:
    _, report = finished_dump()
    whole = {step["file"]: step["text"] for step in data()["steps"] if step["text"]}
    assert any(name.endswith(".sass") for name in whole)
    assert any(name.endswith(".ptx") for name in whole)
    for name, fragments in whole.items():
        lines = (report.folder / name).read_text().split("\n")[:-1]
        assert [plain(fragment) for fragment in fragments] == [shown(line) for line in lines]


def test_figures_remarks_and_decisions_are_on_the_page() -> None:
    _, report = finished_dump()
    assert report.figures is not None
    tile = rf"<b>{report.figures.registers}</b><span>registers</span>"
    assert re.search(tile, page())
    (ours,) = (step for step in data()["steps"] if step["origin"] == "tilepass")
    assert "loops <are> marked" in ours["remarks"][0]
    assert ours["decisions"][0]["reason"] == "loops <are> marked"
    # Markup in texts cannot end the script that holds them.
    assert "</" not in page().split('id="data">')[1].split("</script>")[0].replace("<\\/", "")


def test_a_kernel_without_a_binary_has_a_page_that_says_why(tmp_path: Path) -> None:
    _, report = finished_dump()
    folder = tmp_path / "kernel"
    folder.mkdir()
    steps = tuple(step for step in report.steps if step.is_mlir)
    for step in steps:
        write_file(folder / str(step.file), (report.folder / str(step.file)).read_text())
    failed = KernelReport(folder, report.record, steps, problem="ptxas <failed>: too much")
    opened = write_pages(tmp_path, [failed])
    assert opened == folder / "index.html"
    assert "ptxas &lt;failed&gt;: too much" in opened.read_text()
    assert "no binary" in (tmp_path / "index.html").read_text()
