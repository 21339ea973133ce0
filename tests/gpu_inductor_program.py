"""A program for the GPU tests: it compiles functions with torch.compile and calls them.

usage: gpu_inductor_program.py [softmax] STATE ...

Each state is `off`, `as-it-is`, or `on=PIPELINE`, and what is compiled under it is printed as a
line of JSON: the sign of each result, or `?` where it is wrong. `softmax` leaves the matmul out.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

torch: Any = importlib.import_module("torch")

# A matmul that only Inductor's templates can answer; two of their configurations compete.
TEMPLATES: dict[str, Any] = {
    "max_autotune_gemm": True,
    "max_autotune_gemm_backends": "TRITON",
    "test_configs.max_mm_configs": 2,
}


def softmax(x: Any) -> Any:
    """A reduction and what goes with it, in one kernel."""
    return torch.softmax(x * 2.0, dim=-1)


def matmul(x: Any) -> Any:
    """(128, 256) x (256, 128)."""
    return x @ x.T


def sign(compiled: Callable[[Any], Any], function: Callable[[Any], Any], x: Any) -> str:
    """Whether the compiled function returns what it should, or its negative."""
    result, expected = compiled(x).float(), function(x).float()
    for found, factor in (("+", 1), ("-", -1)):
        if torch.allclose(result, factor * expected, rtol=2e-2, atol=1e-2):
            return found
    return "?"


def signs(only_softmax: bool) -> dict[str, str]:
    """The sign of each function's result."""
    x = torch.randn(128, 256, device="cuda", dtype=torch.float16)
    found = {"softmax": sign(torch.compile(softmax), softmax, x)}
    if not only_softmax:
        found["matmul"] = sign(torch.compile(matmul, options=TEMPLATES), matmul, x)
    return found


def state(text: str) -> AbstractContextManager[object]:
    """The context manager of a state."""
    if not text.startswith("on="):
        return nullcontext()
    from tilepass.activate import enabled

    return enabled(text.removeprefix("on="), load=[os.environ["PASS_FILE"]], remarks="none")


def wait_for_workers() -> None:
    """Inductor compiles in this process as long as its workers are starting."""
    async_compile: Any = importlib.import_module("torch._inductor.async_compile")
    async_compile.AsyncCompile.wait_pool_ready()


def main(arguments: list[str]) -> int:
    """Print a line per state."""
    only_softmax = "softmax" in arguments
    for text in arguments[only_softmax:]:
        if text == "as-it-is":
            wait_for_workers()
        with state(text):
            print(json.dumps({"pid": os.getpid(), **signs(only_softmax)}), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
