"""Mistakes of those who write passes: each ends in a message that names the pass and their line."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from corpus.pass_context import make_context

from tilepass.cli.guard import run_guarded
from tilepass.core import tracebacks
from tilepass.core.errors import OptionError, ParseError, PassFailure, TilepassError
from tilepass.core.pass_base import Pass
from tilepass.core.pipeline_spec import parse_pipeline
from tilepass.core.registry import instantiate, load_file
from tilepass.frontends.triton import bridge
from tilepass.ir import engine
from tilepass.ir.guards import guarded

MODULE = """module {
  tt.func public @f(%x: i32, %y: i32) -> i32 {
    %z = arith.divui %x, %y : i32
    tt.return %z : i32
  }
}
"""
HEAD = """from dataclasses import dataclass
from tilepass.core.pass_base import Anchor, Pass
from tilepass.core.registry import register
from tilepass.ir.engine import ir, passmanager, rewrite
@register
class Mistaken(Pass):
    name = "mistaken"
    anchor = Anchor.end_of("ttir")
"""
RUN = "    def run(self, module, context):\n"
GREEDILY = """        with module.context:
            patterns = rewrite.RewritePatternSet()
            patterns.add("arith.divui", PATTERN)
            rewrite.apply_patterns_and_fold_greedily(module, patterns.freeze())
"""


def _pass(folder: Path, body: str) -> tuple[Pass, Path]:
    file = folder / "mistaken.py"
    file.write_text(HEAD + body)
    load_file(file, quiet=True)
    return instantiate(parse_pipeline("mistaken").items[0]), file


def _failure(folder: Path, body: str) -> tuple[str, Path]:
    """The first line of the error with which the pass ends, without its name, and its file."""
    a_pass, file = _pass(folder, body)
    with pytest.raises(PassFailure) as caught:
        bridge.run_passes(bridge.load(MODULE, "f.mlir"), [a_pass], make_context)
    first, second, third = str(caught.value).splitlines()[:3]
    path = second.removeprefix("reproducer: ")
    assert third == f"replay: tilepass-opt {path} --target cuda:90 -p mistaken --load {file}"
    Path(path).unlink()
    return first.removeprefix("pass 'mistaken' "), file


@pytest.mark.parametrize(
    ("body", "told", "line", "function"),
    [
        (
            RUN + GREEDILY.replace("PATTERN", "lambda op, rewriter: 1 / 0"),
            "raised ZeroDivisionError: division by zero", "1 / 0", "<lambda>",
        ),
        (
            RUN + GREEDILY.replace("PATTERN", "fn=lambda op: True"),
            "raised TypeError: Mistaken.run.<locals>.<lambda>() takes 1 positional argument but 2 "
            "were given", "apply_patterns", "run",
        ),
        (
            RUN + GREEDILY.replace("PATTERN", "lambda op, rewriter: 'yes'"),
            "raised TypeError: the callback of line 12 returned 'yes', expected None, or a bool: "
            "whether the pattern does not match", "apply_patterns", "run",
        ),
        (
            RUN + "        module.operation.walk(lambda op: op.no)\n",
            "raised AttributeError: ", "op.no", "<lambda>",
        ),
        (
            RUN + "        module.operation.walk(lambda op: None)\n",
            "raised TypeError: the callback of line 10 returned None, expected a WalkResult",
            "walk", "run",
        ),
        (
            RUN + "        with module.context:\n"
            "            manager = passmanager.PassManager('builtin.module')\n"
            "            manager.add(lambda op, me: [][1])\n"
            "            manager.run(module.operation)\n",
            "raised IndexError: list index out of range", "[][1]", "<lambda>",
        ),
        (RUN + "        assert False\n", "raised AssertionError", "assert", "run"),
        (RUN + "        raise SystemExit(3)\n", "raised SystemExit: 3", "SystemExit", "run"),
        (
            RUN + "        self.run(module, context)\n",
            "raised RecursionError: maximum recursion depth exceeded", "self.run", "run",
        ),
        (
            RUN + "        next(o for o in module.body.operations[0].regions[0].blocks[0]\n"
            "            ).operation.erase()\n",
            "raised ValueError: erasing 'arith.divui': its result 0 is still used",
            ").operation", "run",
        ),
        (
            RUN + "        return module\n",
            "returned a value of type Module, expected None, as the module is rewritten in place",
            "def run", "run",
        ),
    ],
)  # fmt: skip
def test_the_authors_line_is_named(
    tmp_path: Path, body: str, told: str, line: str, function: str
) -> None:
    message, file = _failure(tmp_path, body)
    lines = file.read_text().splitlines()
    number = 1 + next(index for index, text in enumerate(lines) if line in text)
    assert message.startswith(told)
    assert message.endswith(f" ({file}:{number}, in {function})")


def test_the_line_of_a_helper_beside_the_pass(tmp_path: Path) -> None:
    (tmp_path / "beside_mistaken.py").write_text("def help():\n    return {}['no']\n")
    body = (
        RUN
        + f"        import sys; sys.path.insert(0, {str(tmp_path)!r})\n"
        + "        import beside_mistaken; beside_mistaken.help()\n"
    )
    message, _ = _failure(tmp_path, body)
    assert message == f"raised KeyError: 'no' ({tmp_path}/beside_mistaken.py:2, in help)"


def test_after_a_callback_raised_none_is_called() -> None:
    """The first exception is the one that is told; what calls the patterns returns at once."""
    calls: list[str] = []

    def pattern(*_: object) -> None:
        calls.append("")
        raise ValueError(len(calls))

    # Taken before the guards are in place.
    stock = engine.rewrite.apply_patterns_and_fold_greedily
    module = bridge.to_engine(bridge.load(MODULE, "f.mlir"))

    def run() -> None:
        with guarded(), module.context:
            patterns = engine.rewrite.RewritePatternSet()
            patterns.add("arith.divui", pattern)
            patterns.add("tt.return", pattern)
            stock(module, patterns.freeze())

    with pytest.raises(ValueError, match=r"^1$"):
        run()
    assert len(calls) == 1


def test_an_interrupt_in_a_callback_stays_one() -> None:
    module = bridge.to_engine(bridge.load(MODULE, "f.mlir"))

    def interrupt(_: object) -> engine.ir.WalkResult:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), guarded():
        module.operation.walk(interrupt)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("    def __init__(self, options=None):\n        raise ValueError('no')\n",
         "pass 'mistaken' cannot be made: ValueError: no ({file}:10, in __init__)"),
        ("    def __init__(self):\n        pass\n", "pass 'mistaken' cannot be made: TypeError: "
         "Mistaken.__init__() takes 1 positional argument but 2 were given ({file})"),
        ("    def __init__(self, options=None):\n        pass\n", "pass 'mistaken' cannot be made: "
         "AttributeError: 'Mistaken' object has no attribute 'options' ({file})"),
        ("    @dataclass\n    class Options:\n        x: 'Nope' = 1\n", "pass 'mistaken': the types"
         " of its Options: NameError: name 'Nope' is not defined ({file})"),
        ("    @dataclass\n    class Options:\n        x: int = 1\n"
         "        def __post_init__(self):\n            raise ValueError('too small')\n",
         "pass 'mistaken', its Options: ValueError: too small ({file}:13, in __post_init__)"),
    ],
)  # fmt: skip
def test_a_pass_that_cannot_be_made(tmp_path: Path, body: str, message: str) -> None:
    with pytest.raises(OptionError) as caught:
        _pass(tmp_path, body + RUN + "        pass\n")
    assert str(caught.value) == message.replace("{file}", str(tmp_path / "mistaken.py"))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("def f(:\n", "SyntaxError: invalid syntax ({file}:1)"),
        ("x = 1\nimport no_such_module_anywhere\n",
         "ModuleNotFoundError: No module named 'no_such_module_anywhere' ({file}:2)"),
        ("def f():\n    1 / 0\nf()\n", "ZeroDivisionError: division by zero ({file}:2, in f)"),
        ("from tilepass.core.registry import register\n@register\nclass A: pass\n",
         "@register: <class '{module}.A'> is not a subclass of Pass ({file}:2)"),
        (HEAD + RUN + "        pass\n@register\nclass Other(Mistaken):\n    pass\n",
         "pass class 'Other': its name 'mistaken' is that of class 'Mistaken' in the same file "
         "({file}:11)"),
    ],
)  # fmt: skip
def test_a_file_that_cannot_be_loaded(tmp_path: Path, text: str, told: str) -> None:
    file = tmp_path / "passes.py"
    file.write_text(text)
    with pytest.raises(TilepassError) as caught:
        load_file(file)
    message = re.sub(r"tilepass_loaded_\w+", "{module}", str(caught.value))
    assert message == f"--load {file}: {told.replace('{file}', str(file))}"


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(TilepassError, match="a folder, expected a file"):
        load_file(tmp_path)


def test_the_traceback_is_there_for_who_asks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    a_pass, file = _pass(tmp_path, RUN + "        self.no_such_thing()\n")

    def command(_: object) -> int:
        bridge.run_passes(bridge.load(MODULE, "f.mlir"), [a_pass], make_context)
        return 0

    assert run_guarded(command, []) == 1
    assert "Traceback" not in capsys.readouterr().err
    monkeypatch.setenv(tracebacks.VARIABLE, "1")
    assert run_guarded(command, []) == 1
    told = capsys.readouterr().err
    assert f'File "{file}", line 10, in run' in told
    assert re.search(r"^error: pass 'mistaken' raised AttributeError", told, re.MULTILINE)


def test_a_pass_that_changed_nothing_is_not_told_of(tmp_path: Path) -> None:
    """What fails later on the module is not to be blamed on it."""
    idle, _ = _pass(tmp_path, RUN + "        pass\n")
    changed: list[Pass] = []
    module = bridge.load(MODULE, "f.mlir")
    bridge.run_passes(module, [idle], make_context, rewrote=changed.append)
    assert changed == []


def test_a_pass_is_not_blamed_for_what_it_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where Triton rejects the very module that it printed, the pass had no part in it."""
    a_pass, _ = _pass(
        tmp_path,
        RUN + "        module.body.operations[0].attributes['tt.x'] = "
        "ir.UnitAttr.get(module.context)\n",
    )
    module = bridge.load(MODULE, "f.mlir")
    monkeypatch.setattr(bridge, "parse", _reject)
    with pytest.raises(TilepassError, match="pass 'mistaken' is not to blame: Triton rejects"):
        bridge.run_passes(module, [a_pass], make_context)


def _reject(*_: object) -> None:
    raise ParseError("module: error: not understood")
