"""`tilepass reduce`: what is left holds what the command asks for, and a search can be ended."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from tilepass.cli.main import main
from tilepass.cli.reduce import main as cli_reduce
from tilepass.frontends.triton import bridge
from tilepass.ir import engine
from tilepass.reduce import edits, search

KERNEL = """\
tt.func @kernel(%a: !tt.ptr<f32>, %out: !tt.ptr<f32>, %n: i32, %unused: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<128xf32>
  %range = tt.make_range {end = 128 : i32, start = 0 : i32} : tensor<128xi32>
  %splat = tt.splat %a : !tt.ptr<f32> -> tensor<128x!tt.ptr<f32>>
  %from = tt.addptr %splat, %range : tensor<128x!tt.ptr<f32>>, tensor<128xi32>
  %into = tt.splat %out : !tt.ptr<f32> -> tensor<128x!tt.ptr<f32>>
  %to = tt.addptr %into, %range : tensor<128x!tt.ptr<f32>>, tensor<128xi32>
  %sum, %at = scf.for %i = %c0 to %c64 step %c1 iter_args(%s = %zero, %p = %from) -> (tensor<128xf32>, tensor<128x!tt.ptr<f32>>) : i32 {
    %x = tt.load %p : tensor<128x!tt.ptr<f32>>
    %y = arith.mulf %x, %x : tensor<128xf32>
    %even = arith.cmpi sgt, %n, %i : i32
    %z = scf.if %even -> tensor<128xf32> {
      %w = math.exp %y : tensor<128xf32>
      scf.yield %w : tensor<128xf32>
    } else {
      scf.yield %y : tensor<128xf32>
    }
    %next = arith.addf %s, %z : tensor<128xf32>
    %q = tt.addptr %p, %range : tensor<128x!tt.ptr<f32>>, tensor<128xi32>
    scf.yield %next, %q : tensor<128xf32>, tensor<128x!tt.ptr<f32>>
  }
  tt.store %to, %sum : tensor<128x!tt.ptr<f32>>
  tt.return
}
tt.func @other(%a: !tt.ptr<f32>) {
  tt.return
}
"""  # noqa: E501


def _command(tmp_path: Path, pattern: str) -> list[str]:
    """A command that fails where the text matches, and notes what it was run on."""
    script = tmp_path / "fails.py"
    script.write_text(
        "import re, sys\n"
        "text = open(sys.argv[1]).read()\n"
        f"open({str(tmp_path / 'log')!r}, 'a').write(repr(text) + chr(10))\n"
        f"if re.search({pattern!r}, text, re.DOTALL):\n"
        "    sys.exit('error: found at line 7')\n"
    )
    return ["--", sys.executable, "-IS", str(script), "{}"]


def _reduced(
    tmp_path: Path, pattern: str, capsys: pytest.CaptureFixture[str], text: str = KERNEL
) -> tuple[str, int]:
    source, result = tmp_path / "kernel.ttir", tmp_path / "small.mlir"
    source.write_text(text)
    arguments = ["reduce", str(source), "-o", str(result), *_command(tmp_path, pattern)]
    assert main(arguments) == 0, capsys.readouterr().err
    said = re.search(r"(\d+) of (\d+) operations", capsys.readouterr().out)
    assert said
    # What is left is a module of Triton.
    module = bridge.to_engine(bridge.load(result.read_text(), "small.mlir"))
    assert edits.size(module) == int(said[1])
    assert not list(tmp_path.glob("*.tried"))
    return result.read_text().partition("\n")[2], int(said[1])


def test_an_operation_alone_is_left(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text, count = _reduced(tmp_path, r"math\.exp", capsys)
    # The function, its return, the operation and its operand.
    assert count == 4
    assert "math.exp %cst : tensor<16xf32>" in text
    assert "@kernel()" in text


def test_what_the_command_needs_stays(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text, count = _reduced(tmp_path, r"scf\.for.*iter_args.*tt\.addptr.*scf\.yield", capsys)
    assert count <= 9
    (loop,) = re.findall(r"iter_args\((.*?)\)", text)
    assert loop.count("=") == 1
    assert "to %c1_i32" in text or "to %c0_i32" in text


def test_partitions_lose_what_they_are_given(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    deadlock = Path(__file__).parents[1] / "lit_tests" / "check" / "protocol-deadlock.mlir"
    text, _ = _reduced(tmp_path, r"partition0.*ttng\.arrive", capsys, deadlock.read_text())
    assert "local_load" not in text
    assert re.search(r"ttg\.warp_specialize\(%\w+\)", text)


def test_an_ended_search_goes_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, ended = tmp_path / "whole", tmp_path / "ended"
    for folder in (whole, ended):
        folder.mkdir()
    expected, _ = _reduced(whole, "tt.load.*math.exp", capsys)
    source, result = ended / "kernel.ttir", ended / "small.mlir"
    source.write_text(KERNEL)
    command = ["reduce", str(source), "-o", str(result), *_command(ended, "tt.load.*math.exp")]
    carried = search.KINDS[4]

    def end(_: engine.Module) -> list[edits.Apply]:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(search, "KINDS", (*search.KINDS[:4], edits.Kind(carried.name, end)))
        with pytest.raises(KeyboardInterrupt):
            cli_reduce(command[1:])
    capsys.readouterr()
    small = result.read_text().partition("\n")[2]
    assert "math.exp" in small
    assert result.with_name("small.mlir.tried").exists()
    first = (ended / "log").read_text().splitlines()
    assert main(command) == 0
    assert result.read_text().partition("\n")[2] == expected
    # Nothing of what was tried is tried again, but for what there was to go on from.
    again = set(first) & set((ended / "log").read_text().splitlines()[len(first) :])
    assert again == {repr(small.rstrip())}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--", "true", "{}"], "the command does not fail on the input"),
        (["--", "false"], "the command has no {} for the file's name"),
        (["--match", "deadlock", "--", "sh", "-c", "echo no {}; exit 1"],
         "with 'deadlock' in its output on the input; it says: no "),
        (["--timeout", "0.2", "--", "sh", "-c", "sleep 60 # {}"], "the command does not fail"),
    ],
)  # fmt: skip
def test_errors(
    arguments: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / "kernel.ttir"
    source.write_text(KERNEL)
    result = str(tmp_path / "small.mlir")
    assert main(["reduce", str(source), "-o", result, *arguments]) == 1
    assert message in capsys.readouterr().err
    # So that the same name can be given again.
    assert list(tmp_path.iterdir()) == [source]


def test_options_in_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = str(tmp_path / "kernel.ttir")
    assert main(["reduce", file, "--match", "(", "--", "false", "{}"]) == 1
    assert "error: --match '(': missing ), unterminated subpattern" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["reduce", file, "--jobs", "0", "--", "false", "{}"])
    assert "argument --jobs: '0' is not a positive number" in capsys.readouterr().err


def test_names_that_begin_alike(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """@helper is called, @help is not."""
    called = KERNEL.replace("@other", "@help").replace(
        "  tt.return\n}\ntt", "  tt.call @helper() : () -> ()\n  tt.return\n}\ntt"
    )
    called += "tt.func private @helper() attributes {noinline = true} {\n  tt.return\n}\n"
    text, _ = _reduced(tmp_path, "tt.call", capsys, called)
    assert re.findall(r"@(\w+)", text) == ["kernel", "helper", "helper"]


def test_modules_of_the_cute_dsl(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = Path(__file__).parents[1] / "lit_tests" / "passes" / "cute"
    source, result = tmp_path / "copies.mlir", tmp_path / "small.mlir"
    source.write_text((folder / "cute-vectorize-copies.mlir").read_text())
    arguments = ["reduce", str(source), "-o", str(result)]
    assert main([*arguments, *_command(tmp_path, r"cute\.memref\.store\b|memref\.store\(")]) == 0
    said = re.search(r"(\d+) of (\d+) operations", capsys.readouterr().out)
    assert said
    assert int(said[1]) < int(said[2]) / 10


def test_a_file_of_another_reduction_is_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, result = tmp_path / "kernel.ttir", tmp_path / "small.mlir"
    source.write_text(KERNEL)
    result.write_text("mine\n")
    assert main(["reduce", str(source), "-o", str(result), "--", "false", "{}"]) == 1
    assert "exists and is not from a reduction of this file" in capsys.readouterr().err
    assert result.read_text() == "mine\n"


def test_another_failure_is_not_the_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without --match the first error has to be the same, numbers and places aside."""
    source, result = tmp_path / "kernel.ttir", tmp_path / "small.mlir"
    source.write_text(KERNEL)
    script = (
        "lines=$(wc -l < {}); grep -q math.exp {} && "
        "{ echo {}:$lines:1: error: too many: $lines; exit 1; }; echo error: nothing; exit 1"
    )
    assert main(["reduce", str(source), "-o", str(result), "--", "sh", "-c", script]) == 0
    assert "math.exp" in result.read_text()
    assert " 4 of " in capsys.readouterr().out
