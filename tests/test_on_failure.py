"""`on_failure=skip`: a pass that fails is left out of the kernel, and the program goes on."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from frontend_support import compile_kernel, operation_of, write_pass, write_rewrite

from tilepass.activate import enabled
from tilepass.core.errors import OptionError, PassFailure
from tilepass.core.pass_base import CompilerVersion, PassContext
from tilepass.core.remarks import RemarkSink
from tilepass.frontends.cache_key import pipeline_key
from tilepass.frontends.cute.rewriting import rewrite
from tilepass.frontends.placed import place_passes
from tilepass.ir import engine
from tilepass.subjects.program import program_environment

_RAISES = (
    "from tilepass.ir import engine\n"
    "        last = engine.operations(module)[-1]\n"
    "        last.attributes['left'] = ir.UnitAttr.get(module.context)\n"
    "        raise KeyError('half rewritten')"
)
_BREAKS = (
    "from tilepass.ir import engine\n"
    "        for each in engine.operations(module):\n"
    "            if each.name == 'tt.store':\n"
    "                each.operands[1] = each.operands[0]"
)


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "cache"))


@pytest.mark.parametrize(
    ("name", "body", "reason"),
    [
        ("raises", _RAISES, "raised KeyError: 'half rewritten'"),
        ("breaks", _BREAKS, "left invalid IR"),
    ],
)
def test_a_failing_pass_is_left_out(name: str, body: str, reason: str, tmp_path: Path) -> None:
    load = [write_pass(tmp_path, name, body), write_rewrite(tmp_path)]
    pipeline = f"rewrite-add@end:ttir,{name}"
    with enabled(pipeline, load=load, remarks="none"), pytest.raises(PassFailure, match=reason):
        compile_kernel()
    with enabled(pipeline, load=load, remarks="none", on_failure="skip") as session:
        compiled = compile_kernel()
    assert operation_of(compiled) == "mul"
    assert "left" not in compiled.asm["ttgir"]
    (said,) = [each for each in session.remarks if each.kind == "missed"]
    assert said.pass_name == name
    assert said.message.startswith(f"left out of this kernel: pass '{name}' {reason}")
    assert "reproducer: " in said.message


def test_what_validation_finds_is_left_out(tmp_path: Path) -> None:
    load = [write_rewrite(tmp_path)]
    with enabled(
        "rewrite-add", load=load, remarks="none", on_failure="skip", validate=True
    ) as session:
        compiled = compile_kernel()
    assert operation_of(compiled) == "add"
    assert any("left out of this kernel" in each.message for each in session.remarks)


def test_the_mode_is_part_of_the_key(tmp_path: Path) -> None:
    load = [write_rewrite(tmp_path)]
    stop, skip = (place_passes("rewrite-add", load, on_failure=each) for each in ("stop", "skip"))
    assert pipeline_key(stop) != pipeline_key(skip)
    failing = [write_pass(tmp_path, "raises", _RAISES)]
    with enabled("raises", load=failing, remarks="none", on_failure="skip"):
        compile_kernel()
    # What was compiled without the pass is not found where the pass must not fail.
    with enabled("raises", load=failing, remarks="none"), pytest.raises(PassFailure):
        compile_kernel()


def test_other_modes_are_errors() -> None:
    with pytest.raises(OptionError, match="on-failure: 'go' is not one of stop, skip"):
        enabled("flatten-loops", on_failure="go")


def test_processes_have_the_mode_from_the_environment(tmp_path: Path) -> None:
    load = [str(write_pass(tmp_path, "raises", _RAISES))]
    program = "from frontend_support import *\nprint(operation_of(compile_kernel()))\n"
    with_tests = {**os.environ, "PYTHONPATH": os.path.dirname(__file__)}
    environment = program_environment(with_tests, "raises", load, "missed", on_failure="skip")
    result = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout == "add\n"
    assert (
        "[raises] missed: left out of this kernel: pass 'raises' raised KeyError" in result.stderr
    )


def test_a_cute_module_is_as_it_was(tmp_path: Path) -> None:
    load = [write_pass(tmp_path, "raises", _RAISES)]
    text = "func.func @f(%a: f32) -> f32 { %b = arith.addf %a, %a : f32\nreturn %b : f32 }"
    module = engine.parse(text)
    remarks = RemarkSink("raises", lambda _: None)
    context = PassContext("raises", CompilerVersion("cute", (4, 8)), remarks)
    skip = place_passes("raises", load, on_failure="skip")
    rewrite(module, skip, "stamp", lambda _: context, lambda _: None)
    assert "left" not in engine.print_generic(module)
    assert "left out of this kernel: pass 'raises' raised KeyError" in remarks.remarks[0].message
    with pytest.raises(PassFailure):
        rewrite(module, place_passes("raises", load), "stamp", lambda _: context, lambda _: None)


_NO_CUBE_ROOTS = (
    "from tilepass.ir import engine\n"
    "        for each in engine.operations(module):\n"
    "            if each.name == 'math.absf':\n"
    "                root = ir.Operation.create('math.cbrt', [each.results[0].type],\n"
    "                    [each.operands[0]], loc=each.location, ip=ir.InsertionPoint(each))\n"
    "                each.results[0].replace_all_uses_with(root.results[0])"
)


def test_what_fails_later_leaves_all_passes_out(tmp_path: Path) -> None:
    load = [write_pass(tmp_path, "cube-roots", _NO_CUBE_ROOTS), write_rewrite(tmp_path)]
    pipeline = "rewrite-add@end:ttir,cube-roots"
    reason = "pass 'convert-triton-to-tritongpu' failed on the IR that"
    with enabled(pipeline, load=load, remarks="none"), pytest.raises(PassFailure, match=reason):
        compile_kernel()
    with enabled("", remarks="none"):
        stock = compile_kernel()
    with enabled(pipeline, load=load, remarks="none", on_failure="skip") as session:
        compiled = compile_kernel()
    assert compiled.asm["ptx"] == stock.asm["ptx"]
    assert compiled.metadata._replace(hash="") == stock.metadata._replace(hash="")
    missed = [each for each in session.remarks if each.kind == "missed"]
    assert {each.pass_name for each in missed} == {"rewrite-add", "cube-roots"}
    start = f"all passes are left out of this kernel: {reason}"
    assert all(each.message.startswith(start) for each in missed)
