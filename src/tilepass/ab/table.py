"""The report on a terminal (rich) and as Markdown."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from tilepass.ab.report import PointResult, Report
from tilepass.ab.statistics import Estimate, Verdict
from tilepass.binary.figures import KernelFigures

_COLOURS = {
    Verdict.FASTER: "green",
    Verdict.SLOWER: "red",
    Verdict.SAME: "default",
    Verdict.UNSURE: "yellow",
}


def format_estimate(measured: Estimate) -> str:
    """`1.0123 [1.0111, 1.0135]`: the time ratio and its interval."""
    return f"{measured.ratio:.4f} [{measured.low:.4f}, {measured.high:.4f}]"


def print_report(report: Report, console: Console) -> None:
    """Times, or where nothing ran only the static figures, with what has to be known beside."""
    baseline = report.job.arms[0]
    console.print(f"kernel {report.job.kernel}; {_where(report)}", highlight=False)
    for arm in report.job.arms:
        console.print(f"  arm {arm.label}: {arm.describe()}", highlight=False, markup=False)
    if any(point.samples is not None for point in report.points):
        console.print(_time_table(report))
        threshold = report.job.plan.criteria.threshold
        console.print(
            f"ratio: time of the arm / time of {baseline.label}, median of paired launches with "
            f"its {report.job.plan.criteria.confidence:.0%} interval; above 1 is slower. "
            f"SAME: within {threshold:.1%}. {baseline.label}': the baseline's duplicate.",
            highlight=False,
        )
    if report.figures:
        console.print(_figure_table(report))
    for index, point in enumerate(report.points):
        for line in _notes(report, index, point):
            console.print(line, highlight=False, markup=False)
    for line in _missed(report):
        console.print(line, highlight=False, markup=False)
    for note in report.notes:
        console.print(note, highlight=False, markup=False)
    if report.partial:
        why = f" by {report.ended_by}" if report.ended_by else ""
        console.print(f"PARTIAL: ended{why} before everything was measured", style="yellow")


def _where(report: Report) -> str:
    facts = report.facts
    if "GPU" not in facts:
        return "no GPU: compiled only, nothing was run or timed"
    where = f"{facts['GPU']}, driver {facts.get('driver', '?')}, triton {facts.get('triton', '?')}"
    return where + (f"; clocks {facts['clocks']}" if "clocks" in facts else "")


def _time_table(report: Report) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("shape")
    for arm in report.job.arms:
        table.add_column(f"{arm.label}, us", justify="right")
    for arm in report.job.arms[1:]:
        table.add_column(f"{arm.label} / {report.job.arms[0].label}", justify="right")
        table.add_column("verdict")
    table.add_column(f"{report.job.arms[0].label}' / {report.job.arms[0].label}", justify="right")
    table.add_column("rounds", justify="right")
    table.add_column("MHz", justify="right")
    table.add_column("bits")
    for index in range(len(report.points)):
        table.add_row(*_time_row(report, index))
    return table


def _time_row(report: Report, index: int) -> list[str]:
    point = report.points[index]
    arms = range(len(report.job.arms))
    cells = [report.job.points[index].describe()]
    medians = [report.median_us(index, arm) for arm in arms]
    cells += ["-" if median is None else f"{median:.2f}" for median in medians]
    for arm in arms[1:]:
        cells += _verdict_cells(report, index, arm)
    duplicate = report.duplicate(index)
    cells.append("-" if duplicate is None else format_estimate(duplicate[0]))
    samples = point.samples
    clocks = samples.clocks() if samples is not None else None
    dropped = clocks.dropped_rounds if clocks is not None else 0
    measured = samples.measured if samples is not None else 0
    cells.append(f"{measured - dropped}" + (f" (-{dropped})" if dropped else ""))
    cells.append("-" if clocks is None else f"{clocks.median:.0f}")
    equal = [point.equal_bits.get(arm) for arm in arms[1:]]
    cells.append("equal" if all(equal) else "differ" if False in equal else "-")
    return cells


def _verdict_cells(report: Report, index: int, arm: int) -> list[str]:
    point = report.points[index]
    if arm in point.failures:
        return ["-", "[red]failed[/]"]
    if point.first.get(arm) == 0:
        return ["1 (one binary)", "IDENTICAL"]
    compared = report.compare(index, arm)
    if compared is None:
        return ["-", point.status]
    measured, verdict = compared
    return [format_estimate(measured), f"[{_COLOURS[verdict]}]{verdict}[/]"]


def _figure_table(report: Report) -> Table:
    table = Table(box=None, pad_edge=False, title="static figures", title_justify="left")
    for title in ("shape", "arm", "kernel"):
        table.add_column(title)
    for title in ("registers", "spills, B", "shared, B", "HGMMA", "HMMA", "UTMA", "BAR", "SASS"):
        table.add_column(title, justify="right")
    table.add_column("")
    shown: set[tuple[str, ...]] = set()
    for index, point in enumerate(report.points):
        for arm in sorted(point.kernels):
            for kernel in point.kernels[arm]:
                figures = report.figures.get(kernel.code_hash)
                key = (report.job.arms[arm].label, kernel.code_hash)
                if figures is None or key in shown:
                    continue
                shown.add(key)
                table.add_row(*_figure_row(report, index, arm, figures))
    return table


def figure_lines(report: Report) -> list[str]:
    """One line of static figures for each distinct binary of each arm."""
    lines: dict[tuple[str, str], str] = {}
    for index, point in enumerate(report.points):
        for arm in sorted(point.kernels):
            for kernel in point.kernels[arm]:
                figures = report.figures.get(kernel.code_hash)
                if figures is None:
                    continue
                label = report.job.arms[arm].label
                note = _figure_row(report, index, arm, figures)[-1]
                text = f"{label}: {figures.summary()}" + (f" {note}" if note else "")
                lines.setdefault((label, kernel.code_hash), text)
    return list(lines.values())


def _figure_row(report: Report, index: int, arm: int, figures: KernelFigures) -> list[str]:
    shared = figures.static_shared_bytes + (figures.shared_bytes or 0)
    families = figures.families
    first = report.points[index].first
    note = "IDENTICAL to A" if arm and first.get(arm) == 0 else ""
    if figures.serialized:
        note = "MMAs serialized by ptxas"
    if figures.register_hazards:
        note = f"{figures.register_hazards} registers of dots OVERWRITTEN in flight"
    return [
        report.job.points[index].describe(),
        report.job.arms[arm].label,
        figures.name,
        str(figures.registers),
        f"{figures.spill_store_bytes}/{figures.spill_load_bytes}",
        str(shared),
        *(str(families[title]) for title in ("HGMMA", "HMMA", "UTMA", "BAR")),
        str(sum(figures.instructions.values())),
        note,
    ]


def _notes(report: Report, index: int, point: PointResult) -> Sequence[str]:
    where = report.job.points[index].describe()
    lines: list[str] = []
    if point.message:
        lines.append(f"{where}: {point.message}")
    for arm, failure in sorted(point.failures.items()):
        lines.append(f"{where}: arm {report.job.arms[arm].label} failed: {failure}")
    if point.status == "identical":
        lines.append(f"{where}: IDENTICAL: all arms are the same binary (--force times them)")
    duplicate = report.duplicate(index)
    if duplicate is not None and duplicate[1] is not Verdict.SAME:
        lines.append(
            f"{where}: the baseline and its duplicate do not come out SAME "
            f"({format_estimate(duplicate[0])}), so nothing is concluded"
        )
    return lines


def _missed(report: Report) -> list[str]:
    """What the passes could not do, each once: why a binary may be the same as another."""
    lines: dict[str, None] = {}
    for point in report.points:
        for arm, remarks in sorted(point.remarks.items()):
            for remark in remarks:
                if "] missed: " in remark:
                    lines[f"arm {report.job.arms[arm].label}: {remark}"] = None
    return list(lines)


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
