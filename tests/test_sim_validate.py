"""Validation while kernels are compiled: what it stops, what it lets through, what it says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, cast

import pytest
import triton
import validate_kernels
from frontend_support import compile_kernel, operation_of, write_pass, write_rewrite
from passes_kernels import HOPPER, compile_matmul
from triton.compiler import ASTSource

from tilepass import _startup
from tilepass.activate import enabled
from tilepass.cli.main import main
from tilepass.core.errors import OptionError, PassFailure
from tilepass.core.pass_base import PassContext
from tilepass.core.remarks import RemarkSink
from tilepass.core.versions import triton_version
from tilepass.frontends.triton import bridge
from tilepass.frontends.triton.validation import Validator
from tilepass.ir import engine
from tilepass.passes.triton.strip_assume import StripAssume
from tilepass.sim import compiler
from tilepass.sim.faults import SimulatorFailure
from tilepass.subjects.program import program_environment

assembly_kernel = cast("Any", validate_kernels).assembly_kernel
late_kernel = cast("Any", validate_kernels).late_kernel

# Of a sum the operands may change places.
SWAP = (
    "from tilepass.ir.engine import operations\n"
    "        for each in operations(module):\n"
    "            if each.name == 'arith.addf':\n"
    "                each.operands[0], each.operands[1] = each.operands[1], each.operands[0]\n"
    "                each.attributes['swapped'] = ir.UnitAttr.get(module.context)"
)
ERASE_WAITS = (
    "from tilepass.ir.engine import operations\n"
    "        for each in operations(module):\n"
    "            if each.name == 'ttng.wait_barrier':\n"
    "                each.erase()"
)
FORCE_FLATTEN = (
    "from tilepass.ir.engine import operations\n"
    "        loops = [each for each in operations(module) if each.name == 'scf.for']\n"
    "        loops[0].attributes['tt.flatten'] = ir.UnitAttr.get(module.context)"
)
ONE_OF = """
tt.func public @one(%x: !tt.ptr<f32>, %y: !tt.ptr<f32>) {{
  %a = tt.load %x : !tt.ptr<f32>
  %b = arith.{} %a, %a : f32
  tt.store %y, %b : !tt.ptr<f32>
  tt.return
}}
"""
DIFFERENCE = (
    r"error: pass 'rewrite-add' changed what add_kernel computes\n"
    r"y_pointer\[0\] is \S+ in the first kernel and \S+ in the second; 1\d\d of 192 elements"
    r" differ\nnote: with shapes 64,x_pointer=192,y_pointer=192, seed 0, grid 1,1,1\n"
    r"reproducer: (\S+/tilepass-rewrite-add-\S+\.mlir)\n"
    r"replay: (tilepass-opt \1 .* \| tilepass check \1 --against - --shapes 64,\S+ --grid 1,1,1)\n"
)


@pytest.fixture(autouse=True)
def no_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("TRITON_ALWAYS_COMPILE", "1")
    # Reproducers go there.
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


def test_a_pass_that_keeps_the_values_goes_through(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    swap = write_pass(tmp_path, "swap", SWAP)
    with enabled("swap", load=[swap], remarks="all", validate=True) as session:
        assert operation_of(compile_kernel()) == "add"
    remark, end = session.remarks
    assert (remark.kind, end.kind) == ("analysis", "analysis")
    said = "validated: add_kernel computes the same"
    cases = "in 9 cases (shapes 64; 100); not compared: arguments that overlap"
    assert remark.message == f"{said} {cases}"
    assert end.message == f"{said} at the end of ttgir {cases}"
    assert remark.format() in capfd.readouterr().err


def test_a_module_that_is_not_changed_is_not_executed(tmp_path: Path) -> None:
    idle = write_pass(tmp_path, "idle", "pass")
    with enabled("idle", load=[idle], validate=True) as session:
        compile_kernel()
    assert session.remarks == []


def test_run_stops_at_a_pass_that_changes_values(tmp_path: Path) -> None:
    """With the pass, the difference, and a command that shows it again."""
    load = write_rewrite(tmp_path)
    application = tmp_path / "application.py"
    application.write_text("from frontend_support import compile_kernel\ncompile_kernel()\n")
    tests, scripts = str(Path(__file__).parent), str(Path(sys.executable).parent)
    environment = {
        **os.environ,
        "PYTHONPATH": tests,
        "PATH": os.pathsep.join([scripts, os.environ.get("PATH", "")]),
    }
    command = "import sys; from tilepass.cli.main import main; sys.exit(main())"
    options = ["run", "-p", "rewrite-add", "--load", str(load), "--validate", "--"]
    result = subprocess.run(
        [sys.executable, "-c", command, *options, sys.executable, str(application)],
        env=environment, capture_output=True, text=True,
    )  # fmt: skip
    assert result.returncode == 1
    found = re.search(DIFFERENCE, result.stderr)
    assert found, result.stderr
    assert "Traceback" not in result.stderr
    again = subprocess.run(found[2], shell=True, env=environment, capture_output=True, text=True)
    assert again.returncode == 1
    assert "in the first kernel and" in again.stderr


def test_what_cannot_be_executed_is_a_remark(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """And the compilation goes on, with the values that the pass leaves."""
    with enabled("rewrite-add", load=[write_rewrite(tmp_path)], validate=True):
        assert operation_of(compile_kernel(assembly_kernel)) == "mul"
    message = (
        r"validate_kernels\.py:\d+:\d+: remark: \[rewrite-add\] missed: not validated: "
        r"tt\.elementwise_inline_asm cannot be simulated: .*'sqrt\.approx\.f32'"
    )
    assert re.search(message, capfd.readouterr().err)


@pytest.mark.parametrize("name", ["arith.addf", "arith.mulf"])
@pytest.mark.parametrize("early", [True, False])
def test_a_mistake_of_the_simulator_is_none_of_the_pass(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, early: bool
) -> None:
    """Whether it shows when the kernel is read or when it runs, before the pass or after."""

    def broken(_: object) -> Any:
        return list[Any]()[0]

    monkeypatch.setitem(compiler.OPERATIONS, name, broken if early else lambda _: broken)
    message = (
        rf"error: {name}: the simulator fails with IndexError: .*\nnote: a mistake of tilepass"
    )
    options: dict[str, Any] = {"load": [write_rewrite(tmp_path)], "validate": True}
    with enabled("rewrite-add", **options), pytest.raises(SimulatorFailure, match=message):
        compile_kernel()


def test_a_kernel_that_goes_wrong_by_itself_is_a_remark(tmp_path: Path) -> None:
    """The shapes are to blame, or the kernel; other shapes are executed all the same."""
    load, shapes = [write_rewrite(tmp_path)], ["64,x_pointer=16", "64,no_such=1"]
    options: dict[str, Any] = {"load": load, "remarks": "none", "validate": True}
    with enabled("rewrite-add", validate_shapes=shapes, **options) as session:
        assert operation_of(compile_kernel()) == "mul"
    bounds, name = [each.message for each in session.remarks if each.kind == "missed"]
    assert bounds.startswith(
        "not validated: with shapes 64,x_pointer=16, before the pass: tt.load: "
    )
    assert name.endswith("no parameter 'no_such' (parameters: x_pointer, y_pointer)")
    with (
        enabled("rewrite-add", validate_shapes=[shapes[0], "100"], **options),
        pytest.raises(PassFailure, match="changed what add_kernel computes"),
    ):
        compile_kernel()


def test_a_protocol_that_goes_wrong_stops_the_compilation(tmp_path: Path) -> None:
    """Alone, each program computes the same without its waits."""
    load = write_pass(tmp_path, "erase-waits", ERASE_WAITS, "end:ttgir")
    shapes = ["64,M=128,N=128,K=128"]
    with (
        enabled("erase-waits", load=[load], validate=True, validate_shapes=shapes),
        pytest.raises(PassFailure) as caught,
    ):
        compile_matmul(flatten=False)
    message = str(caught.value)
    assert message.startswith(
        "pass 'erase-waits' rewrote a kernel whose asynchronous protocol goes wrong at the end of "
        "ttgir (rewritten by: erase-waits)\n"
    )
    assert "note: schedule of seed " in message
    assert re.search(r"\nreplay: tilepass check \S+\.mlir --shapes 64,M=128,N=128,K=128$", message)


def test_a_protocol_that_is_right_goes_through(tmp_path: Path) -> None:
    mark = "module.operation.attributes['tt.marked'] = ir.UnitAttr.get(module.context)"
    load = write_pass(tmp_path, "mark", mark, "start:ttgir")
    shapes = ["64,M=128,N=128,K=128"]
    with enabled("mark", load=[load], remarks="none", validate=True, validate_shapes=shapes) as on:
        compile_matmul(flatten=False)
    values, end, protocol = [each.message for each in on.remarks if each.kind == "analysis"]
    overlap = "; not compared: arguments that overlap"
    said = f"in 3 cases (shapes {shapes[0]}){overlap}"
    assert values == f"validated: matmul computes the same {said}"
    assert end == f"validated: matmul computes the same at the end of ttgir {said}"
    assert re.match(r"validated: protocol: \d+ schedules of \d problems", protocol)
    missed = [each.message for each in on.remarks if each.kind == "missed"]
    assert all("not reached (try --shapes 64,M=" in each for each in missed)
    assert any("not validated: 3 trips of scf.for at " in each for each in missed)


def test_what_a_later_pass_of_triton_makes_of_a_rewrite_is_compared(tmp_path: Path) -> None:
    """A mark on a loop changes no value; that the loop is fused does."""
    load = write_pass(tmp_path, "force-flatten", FORCE_FLATTEN)
    signature = {
        **dict.fromkeys(("a_pointer", "b_pointer"), "*fp16"), "c_pointer": "*fp32",
        **dict.fromkeys(("tiles", "K", "q"), "i32"),
    }  # fmt: skip
    aligned: Any = {(index,): [["tt.divisibility", 16]] for index in range(3)}
    source = ASTSource(late_kernel, signature, {"BLOCK": 16}, aligned)
    message = (
        r"^pass 'force-flatten' changed what late_kernel computes: the difference shows at the end "
        r"of ttgir, and not without the pass \(rewritten by: force-flatten\)\n"
        r"(.*\n)+replay: tilepass check \S+\.mlir --against \S+\.ttgir --shapes 64,tiles=\d+"
    )
    with (
        enabled("force-flatten", load=[load], remarks="none", validate=True),
        pytest.raises(PassFailure, match=message),
    ):
        triton.compile(source, target=HOPPER, options={"num_warps": 4})


def test_what_triton_does_alone_is_told_apart() -> None:
    """Then what it makes of the kernel without the pass is what to compare with."""
    added, multiplied = (bridge.load(ONE_OF.format(each), "one.mlir") for each in ("addf", "mulf"))
    source = engine.print_generic(bridge.to_engine(added))
    remarks = RemarkSink("some-pass", lambda _: None)
    context = PassContext("some-pass", triton_version(), remarks)
    Validator().check_result(source, multiplied, [], context, lambda: multiplied)
    own, same = [each.message for each in remarks.remarks]
    assert own.startswith("one: Triton's own passes change what it computes, with shapes ")
    assert "one computes the same at the end of ttgir as without the passes in " in same
    passes = [StripAssume(StripAssume.Options())]
    with pytest.raises(PassFailure, match="the difference shows at the end of ttgir, and not with"):
        Validator().check_result(source, multiplied, passes, context, lambda: added)


def test_the_environment_of_a_validating_program() -> None:
    shapes = ["64,K=100", "32"]
    made = program_environment({}, "p", [], "all", validate=True, shapes=shapes)
    assert (made["TILEPASS_VALIDATE"], made["TILEPASS_VALIDATE_SHAPES"]) == ("1", "64,K=100;32")
    inner = program_environment(made, "p", [], "all")
    assert (inner["TILEPASS_VALIDATE"], inner["TILEPASS_VALIDATE_SHAPES"]) == ("", "")
    is_on = cast("Any", _startup)._is_on
    assert [is_on("X", value) for value in ("", "0", "1")] == [False, False, True]
    with pytest.raises(OptionError, match="X is 'yes': expected 1 or 0"):
        is_on("X", "yes")


def test_shapes_in_error_end_the_command_before_the_program(
    capfd: pytest.CaptureFixture[str],
) -> None:
    options = ["run", "-p", "flatten-loops", "--validate-shapes", "64,K="]
    assert main([*options, "--", sys.executable, "-c", "print('started')"]) == 1
    captured = capfd.readouterr()
    assert captured.err.startswith("error: shapes '64,K=': 'K=' is neither SIZE")
    assert captured.out == ""


def test_the_simulator_is_loaded_only_for_it(tmp_path: Path) -> None:
    program = (
        "import sys\n"
        "from frontend_support import compile_kernel, operation_of\n"
        "print(operation_of(compile_kernel()), 'tilepass.sim' in sys.modules)"
    )
    base = {**os.environ, "PYTHONPATH": str(Path(__file__).parent)}
    environment = program_environment(base, "rewrite-add", [str(write_rewrite(tmp_path))], "none")
    result = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True
    )
    assert result.stdout == "mul False\n", result.stderr
