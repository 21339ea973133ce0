"""Runs kernels in Triton's interpreter, for test_kernels_interpreted.py.

It does so in its own process: `@triton.jit` decides at import whether it interprets. Reads a
JSON list of cases `[kernel, shape, {option: text}, seed]` from standard input and prints for each
one JSON line: null where the outputs agree with the reference, else what is wrong.
"""

from __future__ import annotations

import json
import os
import sys
import warnings
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
from ptx_emulator import run_ptx

os.environ["TRITON_INTERPRET"] = "1"

from tilepass.core.errors import TilepassError
from tilepass.kernels import get_workload


@dataclass(frozen=True)
class AssemblyResults:
    """What `tl.inline_asm_elementwise` expects of the builder."""

    handles: list[Any]

    def get_result(self, index: int) -> Any:
        return self.handles[index]


def repair_interpreter() -> None:
    """What Triton's interpreter lacks and these kernels need.

    * Loop bounds are arrays of one element, which numpy 2.4 no longer turns into integers (3.6).
    * fp32 to bf16 truncates, where the hardware rounds to nearest even; to fp8 it loses the carry
      of a mantissa that rounds up to the next power of two.
    * `tl.dot` multiplies the bit patterns of bf16.
    * Inline assembly is not implemented.
    """
    from triton.runtime import interpreter as module

    interpreter: Any = module
    patch_tensor, convert = interpreter._patch_lang_tensor, interpreter._convert_float
    builder, bf16 = interpreter.InterpreterBuilder, interpreter.tl.bfloat16
    rounded = {
        bf16: (ml_dtypes.bfloat16, np.uint16),
        interpreter.tl.float8e4nv: (ml_dtypes.float8_e4m3fn, np.uint8),
    }
    dot = builder.create_dot

    def index(tensor: Any) -> int:
        return int(tensor.handle.data.item())

    def patch_tensor_with_index(tensor: Any, scope: Any) -> None:
        patch_tensor(tensor, scope)
        scope.set_attr(tensor, "__index__", index)

    def convert_rounding(data: Any, source: Any, target: Any, rounding: Any) -> Any:
        if source == interpreter.tl.float32 and target in rounded:
            kind, bits = rounded[target]
            return data.astype(kind).view(bits)
        return convert(data, source, target, rounding)

    def widen(handle: Any) -> Any:
        if handle.dtype.scalar != bf16:
            return handle
        values = handle.data.view(ml_dtypes.bfloat16).astype(np.float32)
        return interpreter.TensorHandle(values, interpreter.tl.float32)

    def dot_of_floats(self: Any, a: Any, b: Any, *rest: Any) -> Any:
        return dot(self, widen(a), widen(b), *rest)

    def inline_assembly(
        self: Any, text: str, constraints: str, handles: list[Any], *rest: Any
    ) -> Any:
        inputs = [handle.data.view(np.uint32) for handle in handles]
        outputs = [each for each in constraints.split(",") if each.startswith("=")]
        language = interpreter.tl
        types = {"=h": language.int16, "=r": language.int32, "=f": language.float32}
        kinds = {"=h": np.int16, "=r": np.int32, "=f": np.float32}
        handles = [
            interpreter.TensorHandle(result.view(kinds[output]), types[output])
            for output, result in zip(
                outputs, run_ptx(text, inputs, outputs=len(outputs)), strict=True
            )
        ]
        return AssemblyResults(handles)

    interpreter._patch_lang_tensor = patch_tensor_with_index
    builder.create_inline_asm = inline_assembly
    interpreter._convert_float = convert_rounding
    builder.create_dot = dot_of_floats


def run(kernel: str, shape: list[int], options: dict[str, str], seed: int) -> str | None:
    """What is wrong with the outputs of two launches, or None."""
    workload = get_workload(kernel)
    config = workload.config_from(tuple(shape), options)
    inputs = workload.make_inputs(tuple(shape), seed, "cpu", config)
    launch = workload.prepare(inputs, config)
    launch()
    if problem := workload.check(launch, inputs):
        return problem
    launch.poison()
    launch()
    return workload.check(launch, inputs)


def main() -> int:
    repair_interpreter()
    warnings.simplefilter("ignore")
    for kernel, shape, options, seed in json.load(sys.stdin):
        try:
            result = run(kernel, shape, options, seed)
        except TilepassError as error:
            result = f"error: {error}"
        except Exception as error:
            result = f"{type(error).__name__}: {error}"
        print(json.dumps(result), flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
