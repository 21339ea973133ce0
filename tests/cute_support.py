"""What tests of the CuTe front end share. Import before `cutlass`: it sets the DSL's chip."""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

# The DSL reads it when it is imported; no GPU is needed for that chip.
os.environ.setdefault("CUTE_DSL_ARCH", "sm_90a")

import pytest
from cute_kernels import fake_arguments, two_products

PASSES = Path(__file__).with_name("cute_passes.py")
# HMMA instructions (m16n8k16) of the kernel, and of each of its two products.
MMAS, MMAS_OF_ONE = 8, 4


def mmas_of(compiled: Any) -> int:
    """How many MMA instructions the binary inside a compiled function holds."""
    return count_mmas(cubin_of(compiled))


@functools.cache
def count_mmas(cubin: bytes) -> int:
    """The same of a cubin."""
    # Here and not above: a subprocess tells whether Triton was imported.
    from tilepass.binary.sass import count_instructions, sass
    from tilepass.binary.tools import find_tools

    code = sass(cubin, find_tools(90))
    return count_instructions(code, nvidia=True).get("HMMA", 0)


def compile_kernel(options: str = "") -> Any:
    """What `cute.compile` makes of the kernel now."""
    from cutlass import cute

    compile_: Any = cute.compile
    return compile_(two_products, *fake_arguments(), options=f"--gpu-arch sm_90a {options}")


def compiled_mmas() -> int:
    """MMA instructions of the kernel as it is compiled now."""
    return mmas_of(compile_kernel())


def cubin_of(compiled: Any) -> bytes:
    """The cubin in a compiled function: in a string constant, after the header of a fat binary."""
    module = str(compiled.ir_module)
    constant = re.search(r'@kernels_binary\("((?:[^"\\]|\\.)*)"\)', module, re.DOTALL)
    assert constant is not None
    _, magic, rest = _unescape(constant[1]).partition(b"\x7fELF")
    return magic + rest


def _unescape(text: str) -> bytes:
    """The bytes of a string attribute: MLIR writes `\\\\`, `\\"` and two hexadecimal digits."""
    raw = text.encode("utf-8")
    return re.sub(
        rb'\\([0-9A-F]{2}|["\\])',
        lambda match: match[1] if match[1] in b'"\\' else bytes.fromhex(match[1].decode()),
        raw,
    )


@contextmanager
def served(monkeypatch: pytest.MonkeyPatch) -> Generator[list[Any]]:
    """The compiled functions that calls run, in order; without a GPU they cannot run in earnest."""
    from cutlass.base_dsl.jit_executor import JitCompiledFunction

    found: list[Any] = []

    def record(self: Any, arguments: Any) -> None:
        del arguments
        found.append(self)

    with monkeypatch.context() as patch:
        patch.setattr(JitCompiledFunction, "run_compiled_program", record)
        yield found


def tensors() -> tuple[Any, Any, Any]:
    """Arguments on the CPU for a call of the function itself (its binary is not run)."""
    import numpy as np
    from cutlass.cute.runtime import from_dlpack

    dlpack: Any = from_dlpack
    a, b = np.zeros((16, 32), np.float16), np.zeros((16, 32), np.float16)
    return dlpack(a), dlpack(b), dlpack(np.zeros((16, 16), np.float32))
