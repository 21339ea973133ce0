"""Markdown tables of kept reports: against a library, of the GDN prefill, of counters."""

from __future__ import annotations

import math
from typing import Any

from tilepass.ab.counters import FIGURES
from tilepass.ab.table import markdown_table

Json = dict[str, Any]
GDN_SCHEMA = "tilepass.gdn-study/1"


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
    """Caption and table of scripts/flashinfer_gdn_ab.py: time of each order over dense, below 1 is
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
    """Caption and table of scripts/flashinfer_gdn_stalls.py: samples of a launch, a line for each
    order."""
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
    """Caption and table of ab_warp_specialize_tables.py --counters: a line for each kernel."""
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
