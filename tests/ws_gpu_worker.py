"""Runs cases of ws_cases.py in its own process, for test_ws_gpu.py.

Prints `ready`, then reads one case a line from standard input, as JSON, and prints one line for
each: null where all is right, else what is wrong. Ends after a failure that leaves the GPU
unusable. With the argument `compile` cases are compiled for sm_90 only; that needs no GPU.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

from ws_cases import Case

from tilepass.ab.worker import context_usable
from tilepass.activate import enabled
from tilepass.kernels import get_workload

LAUNCHES = 20
SEEDS = (0, 1)


def check_on_gpu(case: Case) -> str | None:
    """What is wrong with the launches of a case, or None."""
    from repeated_launches import launches_that_differ

    workload = get_workload(case.kernel)
    config = workload.config_for(case.shape, **case.fields)
    for seed in SEEDS:
        inputs = workload.make_inputs(case.shape, seed, "cuda", config)
        launch = workload.prepare(inputs, config)
        with enabled(case.pipeline, remarks="none"):
            compiled = launch()
            if problem := workload.check(launch, inputs) or _not_specialized(compiled, case):
                return f"seed {seed}: {problem}"
            if changed := launches_that_differ(launch, LAUNCHES):
                return f"seed {seed}: launches {changed} of {LAUNCHES} differ"
    return None


def compile_for_sm_90(case: Case) -> str | None:
    """What is wrong with the compilation of a case, or None."""
    from triton.backends.compiler import GPUTarget

    workload = get_workload(case.kernel)
    config = workload.config_for(case.shape, **case.fields)
    with enabled(case.pipeline, remarks="none"):
        return _not_specialized(workload.compile(config, GPUTarget("cuda", 90, 32)), case)


def _not_specialized(compiled: Any, case: Case) -> str | None:
    if case.must_specialize and "ttg.warp_specialize" not in compiled.asm["ttgir"]:
        return "the kernel is not warp specialized"
    return None


def main() -> int:
    """Serve cases until standard input ends."""
    run: Callable[[Case], str | None] = check_on_gpu
    if sys.argv[1:] == ["compile"]:
        run = compile_for_sm_90
    else:
        import torch

        torch.zeros(1, device="cuda")
    print("ready", flush=True)
    for line in sys.stdin:
        data: dict[str, Any] = json.loads(line)
        data["shape"] = tuple(data["shape"])
        case = Case(**data)
        failed = False
        try:
            problem = run(case)
        except Exception as error:
            problem, failed = f"{type(error).__name__}: {error}", True
        print(json.dumps(problem), flush=True)
        if failed and run is check_on_gpu and not context_usable():
            return 3
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
