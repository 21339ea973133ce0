"""What is asked of the pass on an H200, case by case."""

from __future__ import annotations

from benchmarks.gdn_prefill.measure import CaseResult

# Largest time against dense by (type, case); for every other case the slack below.
GOALS = {
    ("bf16", "1x8192"): 0.94,
    ("bf16", "4x2048"): 0.95,
    ("bf16", "8x4096"): 0.95,
    ("f16", "1x8192"): 0.97,
}
SLACK = {"bf16": 1.005, "f16": 1.01}


def misses(result: CaseResult, arms: list[str]) -> dict[str, list[str]]:
    """For each arm but the first, what it fails to reach in this case."""
    found: dict[str, list[str]] = {name: [] for name in arms[1:]}
    for name, equal in result.equal_bits.items():
        if not equal:
            found[name].append(f"{result.dtype} {result.case}: bits differ from dense")
    if result.summary is None:
        return found
    goal = GOALS.get((result.dtype, result.case), SLACK[result.dtype])
    for each in result.summary.comparisons:
        ratio = each.estimate.ratio
        if ratio > goal:
            found[arms[each.arm]].append(f"{result.dtype} {result.case}: {ratio:.4f} > {goal}")
    return found
