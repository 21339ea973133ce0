"""Write what README.md quotes: tables from reports of `tilepass ab --json`, and the demo's output.

Usage: .venv/bin/python scripts/readme_tables.py [--check]

A table stands between `<!-- table: results/NAME.json -->` and `<!-- end of table -->`. With
`--check` nothing is written and the demo does not run. Exits non-zero if a table and its report do
not agree.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from tilepass.ab.counters import SCHEMA as COUNTERS
from tilepass.ab.gdn_study.stalls import SCHEMA as STALLS
from tilepass.ab.quoted_tables import (
    GDN_SCHEMA,
    counters_table_of,
    gdn_table_of,
    library_table_of,
    stalls_table_of,
)
from tilepass.ab.report import SCHEMA
from tilepass.ab.table import markdown_table
from tilepass.core.errors import TilepassError

SOURCE = Path(__file__).resolve().parents[1]
README = SOURCE / "README.md"
TABLE = re.compile(r"(<!-- table: (\S+) -->\n)(.*?)(<!-- end of table -->)", re.DOTALL)
DEMO = re.compile(r"(<!-- demo -->\n).*?(<!-- end of demo -->)", re.DOTALL)


def describe_arm(arm: dict[str, Any]) -> str:
    """`A: stock`, `B: flatten-loops{mode=on}`, with the kernel's own options behind."""
    options = [f"{name}={value}" for name, value in arm["overrides"].items()]
    return f"{arm['label']}: `{', '.join([arm['pipeline'] or 'stock', *options])}`"


def describe_point(point: dict[str, Any]) -> str:
    """Shape and the options that all arms share."""
    options = [f"{name}={value}" for name, value in point["overrides"].items()]
    return " ".join(["x".join(map(str, point["shape"])), *options])


def ratio_cells(arm: dict[str, Any], status: str) -> list[str]:
    """Ratio with its interval, and verdict, of an arm against the baseline."""
    compared: dict[str, Any] | None = arm["against_baseline"]
    if compared is None:
        return ["-", status]
    if arm["same_binary_as"] != arm["arm"]:
        return [f"the binary of {arm['same_binary_as']}", compared["verdict"]]
    interval = f"{compared['ratio']:.4f} [{compared['low']:.4f}, {compared['high']:.4f}]"
    return [interval, compared["verdict"]]


def row(point: dict[str, Any]) -> list[str]:
    """One line of a table: shape, times in us, throughput of the baseline, ratios, A'/A."""
    baseline, *others = point["arms"]
    times = [arm["median_us"] for arm in point["arms"]]
    cells = [describe_point(point), *("-" if t is None else f"{t:.1f}" for t in times)]
    flops, base_time = point["flops"], baseline["median_us"]
    cells.append(f"{flops / base_time / 1e6:.0f}" if flops and base_time else "-")
    for arm in others:
        cells += ratio_cells(arm, point["status"])
    duplicate = point["duplicate"]
    cells.append("-" if duplicate is None else f"{duplicate['ratio']:.4f} {duplicate['verdict']}")
    return cells


def table(report: dict[str, Any]) -> str:
    """Caption and table of one report."""
    facts, labels = report["environment"], [arm["label"] for arm in report["arms"]]
    base = labels[0]
    header = ["shape", *(f"{label}, us" for label in labels), f"{base}, TFLOP/s"]
    for label in labels[1:]:
        header += [f"{label} / {base}", "verdict"]
    header.append(f"{base}' / {base}")
    versions = f"Triton {facts['triton']}, torch {facts['torch']}"
    caption = f"**{facts['GPU']}**, driver {facts['driver']}, {versions}; `{report['kernel']}`; "
    caption += "; ".join(describe_arm(arm) for arm in report["arms"])
    return f"{caption}\n\n{markdown_table(header, [row(p) for p in report['points']])}\n"


def table_of_file(name: str) -> str:
    """The table of a report file.

    Raises TilepassError where there is no such report, or one that measured nothing.
    """
    path = SOURCE / name
    if not path.is_file():
        raise TilepassError(f"README.md: {name}: no such file")
    report: dict[str, Any] = json.loads(path.read_text())
    if report.get("schema") not in (SCHEMA, GDN_SCHEMA, COUNTERS, STALLS):
        raise TilepassError(f"{name}: not a report of `tilepass ab --json` ({SCHEMA})")
    if "GPU" not in report["environment"]:
        raise TilepassError(f"{name}: this report was made without a GPU")
    if report["schema"] == GDN_SCHEMA:
        return gdn_table_of(report)
    if report["schema"] == STALLS:
        return stalls_table_of(report)
    if report["schema"] == COUNTERS:
        return counters_table_of(report)
    return library_table_of(report) if report["arms"][0].get("library") else table(report)


def demo_quote() -> str:
    """What the demo says of the pass and of the change, as Markdown.

    Raises TilepassError where the demo fails.
    """
    command = [sys.executable, str(SOURCE / "scripts" / "demo.py")]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        raise TilepassError(f"scripts/demo.py: {result.stderr}")
    said = result.stdout.split("\n\n", 1)[1].split("\n\n== do both")[0]
    return f"```text\n{said}\n```\n"


def main() -> int:
    """Command line; returns the exit code."""
    parser = argparse.ArgumentParser(description="Write what README.md quotes.")
    parser.add_argument("--check", action="store_true", help="compare, write nothing")
    check: bool = parser.parse_args().check
    text = README.read_text()
    try:
        wanted = TABLE.sub(lambda found: found[1] + table_of_file(found[2]) + found[4], text)
        if not check:
            quote = demo_quote()
            wanted = DEMO.sub(lambda found: found[1] + quote + found[2], wanted)
    except TilepassError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    if not check:
        README.write_text(wanted)
    elif wanted != text:
        print("error: README.md: a table is not what its report says", file=sys.stderr)
        return 1
    print(f"README.md: {len(TABLE.findall(text))} tables")
    return 0


if __name__ == "__main__":
    sys.exit(main())
