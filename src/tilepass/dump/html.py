"""The pages of a dump: one for each kernel, one that lists them. No page needs the network."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from tilepass.binary.figures import KernelFigures
from tilepass.dump.page_data import page_data
from tilepass.dump.report import KernelReport
from tilepass.dump.store import write_file

PAGE_FILE = "index.html"


def write_pages(dump: Path, reports: Sequence[KernelReport]) -> Path:
    """Write the pages; returns the one to open: the kernel's if there is only one.

    Raises DumpError.
    """
    environment = Environment(
        loader=PackageLoader("tilepass.dump"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    environment.filters["data"] = _script_data
    for report in reports:
        page = environment.get_template("kernel.html.j2").render(
            report=report, tiles=_tiles(report.figures), data=page_data(report)
        )
        write_file(report.folder / PAGE_FILE, page)
    overview = environment.get_template("overview.html.j2").render(
        title=dump.name, reports=reports, page=PAGE_FILE, columns=_columns(reports)
    )
    write_file(dump / PAGE_FILE, overview)
    return (reports[0].folder if len(reports) == 1 else dump) / PAGE_FILE


def _script_data(value: Any) -> Markup:
    """JSON that may stand inside a script element: nothing in it ends or nests the element."""
    text = json.dumps(value, separators=(",", ":"), default=str)
    return Markup(text.replace("</", "<\\/").replace("<!--", "<\\u0021--"))


def _tiles(figures: KernelFigures | None) -> list[tuple[str, str, str]]:
    """(what, value, "bad" or "") for the figures at the head of a kernel's page."""
    if figures is None:
        return []
    spills = figures.spill_store_bytes + figures.spill_load_bytes
    dynamic = "?" if figures.shared_bytes is None else f"{figures.shared_bytes:,}"
    tiles = [
        ("registers", str(figures.registers), ""),
        (
            "spill stores / loads",
            f"{figures.spill_store_bytes} / {figures.spill_load_bytes} B",
            "bad" if spills else "",
        ),
        ("stack", f"{figures.stack_bytes} B", "bad" if figures.stack_bytes else ""),
        ("shared memory", f"{dynamic} + {figures.static_shared_bytes} B", ""),
    ]
    return tiles + [(title, str(n), "") for title, n in figures.families.items() if n]


def _columns(reports: Sequence[KernelReport]) -> list[str]:
    """The instruction families that occur in any kernel of the dump."""
    found = {
        title: None
        for report in reports
        if report.figures
        for title, count in report.figures.families.items()
        if count
    }
    return list(found)
