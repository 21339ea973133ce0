"""Launches of a compiled arm for a profiler: what is between start and stop is looked at.

usage: python -m benchmarks.gdn_prefill.launch REQUEST.json CASE LAUNCHES
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from benchmarks.gdn_prefill.build import Request, keep_tvm_ffi_from_building, load, result


def main() -> int:
    """Launch one arm: five times to warm up, then as often as asked for."""
    keep_tvm_ffi_from_building()
    import torch

    from benchmarks.gdn_prefill.workload import Inputs, cases_named

    file, name, launches = sys.argv[1:]
    request = Request(**json.loads(Path(file).read_text()))
    (function,) = load(result(request), 1)
    (case,) = cases_named(name)
    inputs = Inputs(case, request.dtype, "cuda")
    outputs = inputs.new_outputs()
    cuda: Any = torch.cuda

    def launch(times: int) -> None:
        stream = int(cuda.current_stream().cuda_stream)
        for _ in range(times):
            function(*inputs.arguments(outputs, "call", stream))
        cuda.synchronize()

    launch(5)
    cuda.profiler.start()
    launch(int(launches))
    cuda.profiler.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
