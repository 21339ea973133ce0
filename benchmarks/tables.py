"""Write what pages quote: tables from reports of `tilepass ab --json`, and the demo's output.

Usage: .venv/bin/python -m benchmarks.tables [--check]

The tables are in docs/results.md, the demo in README.md. A table stands between
`<!-- table: results/NAME.json -->` and `<!-- end of table -->`. With `--check` nothing is written
and the demo does not run. Exits non-zero if a table and its report do not agree.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from benchmarks.counters import FIGURES
from benchmarks.counters import SCHEMA as COUNTERS
from benchmarks.gdn_prefill.arms import SCHEMA as GDN
from benchmarks.gdn_prefill.stalls import SCHEMA as STALLS
from tilepass.ab.report import SCHEMA
from tilepass.ab.table import markdown_table
from tilepass.core.errors import TilepassError

Json = dict[str, Any]
SOURCE = Path(__file__).resolve().parents[1]
README = SOURCE / "README.md"
RESULTS = SOURCE / "docs" / "results.md"
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
        raise TilepassError(f"{RESULTS.name}: {name}: no such file")
    report: dict[str, Any] = json.loads(path.read_text())
    if report.get("schema") not in (SCHEMA, GDN, COUNTERS, STALLS):
        raise TilepassError(f"{name}: not a report of `tilepass ab --json` ({SCHEMA})")
    if "GPU" not in report["environment"]:
        raise TilepassError(f"{name}: this report was made without a GPU")
    if report["schema"] == GDN:
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


def library_table_of(report: Json) -> str:
    """Caption and table of a report whose first arm is a library: its time over each arm's, medians
    of paired ratios, so that above 1 an arm is faster. A line for each arm, a column for each
    shape."""
    labels = [arm["label"] for arm in report["arms"]]
    points = [point for point in report["points"] if point["arms"]]
    shapes = ["x".join(map(str, point["shape"])) for point in points]
    lines = [[f"{labels[0]}, us", *(_us(point["arms"][0]) for point in points), "", ""]]
    found = [[_speedup(point, label) for point in points] for label in labels[1:]]
    for label, ratios in zip(labels[1:], found, strict=True):
        lines.append([label, *_cells(ratios)])
    best = [_best([ratios[index] for ratios in found]) for index in range(len(points))]
    lines.append(["best", *_cells(best)])
    duplicates = [point["duplicate"] for point in points]
    control = ["-" if each is None else f"{each['ratio']:.3f}" for each in duplicates]
    lines.append([f"{labels[0]}' / {labels[0]}", *control, "", ""])
    library = report["arms"][0]["library"].rpartition(":")[2]
    arms = "; ".join(_described(arm) for arm in report["arms"][1:])
    caption = f"{_machine(report)}; `{report['kernel']}`; library: `{library}`; {arms}"
    header = [f"{labels[0]} / arm", *shapes, "geomean", "least"]
    return f"{caption}\n\n{markdown_table(header, lines)}\n"


def gdn_table_of(study: Json) -> str:
    """Caption and table of benchmarks.gdn_prefill: time of each order over dense, below 1 is
    faster, with its interval."""
    arms = [name for name in study["arms"] if name != "dense"]
    lines: list[list[str]] = []
    for case in study["cases"]:
        if not case["rounds"]:
            continue
        bits = all(case["equal_bits"].values())
        cells = [_interval(case["ratios"][name]) for name in arms]
        time = f"{case['median_us']['dense']:.1f}"
        lines.append(
            [
                case["dtype"],
                case["case"],
                time,
                *cells,
                f"{case['duplicate']['ratio']:.4f}",
                "yes" if bits else "NO",
            ]
        )
    header = ["type", "sequences x length", "dense, us", *arms, "dense' / dense", "equal bits"]
    return f"{_machine(study)}\n\n{markdown_table(header, lines)}\n"


def stalls_table_of(report: Json) -> str:
    """Caption and table of benchmarks.gdn_prefill.sample_stalls: samples of a launch by order."""
    lines: list[list[str]] = []
    for name, arm in report["arms"].items():
        elsewhere = arm["total"] - arm["loads"] - arm["stores"]
        numbers = (arm["total"], elsewhere, arm["loads"], arm["stores"], arm["queued"])
        lines.append([name, *(f"{number:.0f}" for number in numbers)])
    header = ["order", "samples", "elsewhere", "loads of the state", "stores of the state"]
    header.append("of these, waiting for the load/store unit")
    caption = f"{_machine(report)}; {report['dtype']}, {report['case']}"
    return f"{caption}\n\n{markdown_table(header, lines)}\n"


def counters_table_of(report: Json) -> str:
    """Caption and table of benchmarks.warp_specialize --counters: a line for each kernel."""
    labels = [figure.label for figure in FIGURES.values()]
    lines: list[list[str]] = []
    for point in report["points"]:
        shape = "x".join(map(str, point["shape"]))
        for arm in point["arms"]:
            for kernel in arm["kernels"]:
                cells = [f"{kernel[each]:.1f}" if each in kernel else "-" for each in labels]
                lines.append([shape, arm["arm"], *cells])
    return f"{_machine(report)}\n\n{markdown_table(['shape', 'arm', *labels], lines)}\n"


def _machine(report: Json) -> str:
    facts = report["environment"]
    versions = f"Triton {facts['triton']}, torch {facts['torch']}"
    return f"**{facts['GPU']}**, driver {facts['driver']}, {versions}"


def _described(arm: Json) -> str:
    options = [f"{name}={value}" for name, value in arm["overrides"].items()]
    return f"{arm['label']}: `{', '.join([arm['pipeline'] or 'stock', *options])}`"


def _us(arm: Json) -> str:
    time: float | None = arm["median_us"]
    return "-" if time is None else f"{time:.1f}"


def _speedup(point: Json, label: str) -> float | None:
    for arm in point["arms"]:
        if arm["arm"] == label and arm["against_baseline"] is not None:
            return 1 / arm["against_baseline"]["ratio"]
    return None


def _best(ratios: list[float | None]) -> float | None:
    return max((ratio for ratio in ratios if ratio is not None), default=None)


def _cells(ratios: list[float | None]) -> list[str]:
    known = [ratio for ratio in ratios if ratio is not None]
    cells = ["-" if ratio is None else f"{ratio:.3f}" for ratio in ratios]
    if not known:
        return [*cells, "-", "-"]
    mean = math.exp(sum(map(math.log, known)) / len(known))
    return [*cells, f"{mean:.3f}", f"{min(known):.3f}"]


def _interval(ratio: Json) -> str:
    return f"{ratio['ratio']:.4f} [{ratio['low']:.4f}, {ratio['high']:.4f}]"


def main() -> int:
    """Command line; returns the exit code."""
    parser = argparse.ArgumentParser(description="Write what pages quote.")
    parser.add_argument("--check", action="store_true", help="compare the tables, write nothing")
    check: bool = parser.parse_args().check
    text = RESULTS.read_text()
    try:
        wanted = TABLE.sub(lambda found: found[1] + table_of_file(found[2]) + found[4], text)
        if not check:
            quote = demo_quote()
            README.write_text(
                DEMO.sub(lambda found: found[1] + quote + found[2], README.read_text())
            )
    except TilepassError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    if not check:
        RESULTS.write_text(wanted)
    elif wanted != text:
        print("error: docs/results.md: a table is not what its report says", file=sys.stderr)
        return 1
    print(f"docs/results.md: {len(TABLE.findall(text))} tables")
    return 0


if __name__ == "__main__":
    sys.exit(main())
