"""Shared memory of kernels that store through pointers with strides of which nothing is known: what
is stored changes its layout through shared memory, beside the ring of the dot's operands."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from typing import Any

import pytest
from ws_cases import NARROW, SCHEMES, cases_of

from tests.ws_core_support import HOPPER, PASS, KeepModule
from tilepass.activate import enabled
from tilepass.core.assembler import AssemblerLog
from tilepass.kernels import get_workload

# Of a thread block, in bytes (CUDA C++ Programming Guide, technical specifications per compute
# capability).
_MOST_SHARED = 227 * 1024
_FIELDS: dict[str, Any] = {**NARROW, "flatten": False}
_CONVERSION_OF_FP32 = re.compile(r"ttg\.convert_layout .* : tensor<\d\d+x\d+xf32, #mma")


@pytest.fixture(autouse=True)
def no_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing comes from earlier compilations."""
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("TRITON_DEFAULT_FP_FUSION", "1")


@pytest.mark.parametrize(
    ("variant", "scheme"),
    [
        ("pointer", "cooperative"),
        ("pointer", "split-consumer"),
        ("pointer", "ping-pong"),
        ("pointer-bias", "split-turns"),
        ("pointer-bias", "ping-pong-4"),
        ("grouped", "split-consumer"),
        ("grouped", "ping-pong"),
    ],
)
def test_shared_memory_holds_a_plan(variant: str, scheme: str) -> None:
    case = next(cases_of(variant, scheme))
    compiled, log = _compile(case.kernel, _FIELDS | case.fields, SCHEMES[scheme])
    assert compiled.metadata.shared <= _MOST_SHARED
    assert log.serialized == ()


@pytest.mark.parametrize("scheme", ["split-consumer", "ping-pong", "cooperative"])
def test_no_more_is_converted_than_a_piece_that_is_stored(scheme: str) -> None:
    options = f"scheme={scheme},stages=3,epilogue-subtile=4"
    compiled, _ = _compile("persistent_matmul", _FIELDS | {"store": "pointer"}, options)
    text = compiled.asm["ttgir"]
    assert "ttg.convert_layout" in text
    assert not _CONVERSION_OF_FP32.search(text)


def _compile(kernel: str, fields: dict[str, Any], options: str) -> tuple[Any, AssemblerLog]:
    """A kernel specialised as a launch is whose sizes and strides are not multiples of 16."""
    triton: Any = importlib.import_module("triton")
    workload = get_workload(kernel)
    config = workload.config_for(workload.default_shapes[0], **fields)
    source, compile_options = workload.ast_source(config)
    for index in [each for each in source.attrs if _is_integer(source, each)]:
        del source.attrs[index]
    with enabled(f"{PASS}{{{options}}},keep-module", remarks="none"):
        compiled = triton.compile(source, target=HOPPER, options=compile_options)
    return compiled, KeepModule.logs[-1]


def _is_integer(source: Any, index: tuple[int, ...]) -> bool:
    return source.signature[source.fn.arg_names[index[0]]] == "i32"
