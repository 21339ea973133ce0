"""The bridge: loading with diagnostics, the trip of passes, failures with reproducers."""

from __future__ import annotations

import os
import re
import threading
from pathlib import Path
from typing import ClassVar

import pytest
from corpus.pass_context import make_context

from tilepass.core.diagnostics import SourceLocation
from tilepass.core.errors import ParseError, PassFailure, TilepassError
from tilepass.core.pass_base import Anchor, Pass, PassContext
from tilepass.core.versions import triton_version
from tilepass.frontends.triton import bridge, modules
from tilepass.ir import engine
from tilepass.ir.layouts import TensorDescSpellingError

FUNCTION = """module {
  tt.func public @f(%x: i32, %p: !tt.ptr<i32>) {
    %y = arith.addi %x, %x : i32
    tt.store %p, %y : !tt.ptr<i32>
    tt.return
  }
}
"""


class _TestPass(Pass):
    anchor: ClassVar[Anchor] = Anchor.end_of("ttir")

    def operation(self, module: engine.Module, name: str) -> engine.Operation:
        return next(op for op in engine.operations(module) if op.name == name)


class Mark(_TestPass):
    """Sets an attribute on the function; `log` records the runs."""

    name = "mark"
    log: ClassVar[list[str]] = []

    def run(self, module: engine.Module, context: PassContext) -> None:
        self.log.append(context.pass_name)
        function = self.operation(module, "tt.func")
        function.attributes["tt.marked"] = engine.ir.UnitAttr.get(module.context)


class MarkStores(Mark):
    name = "mark-stores"
    touches = ("tt.store", "tt.atomic_rmw")


class NeedsDot(Mark):
    name = "needs-dot"
    touches = ("tt.dot",)


class MakesDot(_TestPass):
    """Creates an operation that another pass touches."""

    name = "makes-dot"

    def run(self, module: engine.Module, context: PassContext) -> None:
        add = self.operation(module, "arith.addi")
        engine.ir.Operation.create(
            "tt.print",
            attributes={
                key: engine.ir.Attribute.parse(text, module.context)
                for key, text in {
                    "prefix": '"p"',
                    "hex": "false",
                    "isSigned": "array<i32>",
                }.items()
            },
            loc=add.location,
            ip=engine.ir.InsertionPoint(add),
        )


class NeedsPrint(Mark):
    name = "needs-print"
    touches = ("tt.print",)


class Raises(_TestPass):
    name = "raises"

    def run(self, module: engine.Module, context: PassContext) -> None:
        raise KeyError("lost")


class Refuses(_TestPass):
    name = "refuses"

    def run(self, module: engine.Module, context: PassContext) -> None:
        raise TilepassError("flatten=on cannot be carried out for the loop in line 3")


class ErasesUsed(_TestPass):
    name = "erases-used"

    def run(self, module: engine.Module, context: PassContext) -> None:
        self.operation(module, "arith.addi").erase()


class BreaksDominance(_TestPass):
    name = "breaks-dominance"

    def run(self, module: engine.Module, context: PassContext) -> None:
        self.operation(module, "arith.addi").move_after(self.operation(module, "tt.store"))


class BreaksTypes(_TestPass):
    """Invalid for Triton alone: the engine does not know the operation."""

    name = "breaks-types"

    def run(self, module: engine.Module, context: PassContext) -> None:
        add = self.operation(module, "arith.addi")
        wide = engine.ir.IntegerType.get_signless(64, module.context)
        engine.ir.Operation.create(
            "tt.bitcast",
            results=[wide],
            operands=[add.results[0]],
            loc=add.location,
            ip=engine.ir.InsertionPoint.after(add),
        )


@pytest.fixture
def module() -> bridge.TritonModule:
    return bridge.load(FUNCTION, "kernel.mlir")


@pytest.fixture(autouse=True)
def _fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty log, and reproducers in a folder that goes."""
    Mark.log.clear()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))


def test_locations_name_the_users_file(module: bridge.TritonModule) -> None:
    assert 'loc("kernel.mlir":3:10)' in module.str()
    assert "/proc/" not in module.str()
    part = bridge.load(FUNCTION, "kernel.mlir", first_line=41)
    assert 'loc("kernel.mlir":43:10)' in part.str()


def test_locations_in_the_text_are_kept() -> None:
    text = FUNCTION.replace("x : i32\n", 'x : i32 loc("other.py":7:8)\n')
    assert 'loc("other.py":7:8)' in bridge.load(text, "kernel.mlir").str()


@pytest.mark.parametrize(
    ("bad", "place", "message"),
    [
        ("arith.addi %x, %z : i32", "13:25", "undeclared SSA value"),
        ("tt.nothing %x", "13:10", "nothing"),
        ("arith.addi %x, %p : i32", "13:25", "prior uses"),
        ('"tt.addptr"(%x, %x) : (i32, i32) -> i32', "13:10", "tt.addptr"),
    ],
)
def test_parse_errors_are_located(
    bad: str, place: str, message: str, capfd: pytest.CaptureFixture[str]
) -> None:
    text = FUNCTION.replace("arith.addi %x, %x : i32", bad)
    with pytest.raises(ParseError, match=message) as caught:
        bridge.load(text, "kernel.mlir", first_line=11)
    assert str(caught.value).startswith(f"kernel.mlir:{place}: error: ")
    assert capfd.readouterr().err == ""


def test_truncated_text_is_an_error() -> None:
    with pytest.raises(ParseError, match=r"^kernel.mlir:3:32: error: "):
        bridge.load("\n".join(FUNCTION.splitlines()[:3]), "kernel.mlir")


def test_the_other_descriptor_spelling_is_explained() -> None:
    spellings = ("!tt.tensordesc<tensor<8x16xf16>>", "!tt.tensordesc<8x16xf16>")
    wrong = spellings[triton_version().version < (3, 8)]
    with pytest.raises(TensorDescSpellingError, match=r"the installed Triton .* wants"):
        bridge.load(FUNCTION.replace("!tt.ptr<i32>) {", f"!tt.ptr<i32>, %d: {wrong}) {{"), "f")


def test_printing_generic_text_leaves_the_module(module: bridge.TritonModule) -> None:
    before = module.str()
    generic = bridge.generic_text(module)
    assert '"tt.store"(' in generic
    assert "^bb1" not in generic
    assert module.str() == before
    assert module.verify()


def test_an_empty_module_makes_the_trip() -> None:
    empty = bridge.load("module {\n}\n", "empty.mlir")
    after = bridge.run_passes(empty, [_Identity()], make_context)
    assert after.str() == empty.str()


class _Identity(_TestPass):
    name = "identity"

    def run(self, module: engine.Module, context: PassContext) -> None: ...


def test_a_pass_rewrites_a_copy(module: bridge.TritonModule) -> None:
    before = module.str()
    after = bridge.run_passes(module, [Mark()], make_context)
    assert "tt.marked" in after.str()
    assert module.str() == before


def test_no_trip_where_nothing_is_touched(
    module: bridge.TritonModule, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "parse_expanded", None)
    assert bridge.run_passes(module, [NeedsDot()], make_context) is module
    assert bridge.run_passes(module, [], make_context) is module
    assert Mark.log == []


def test_one_trip_for_consecutive_passes(
    module: bridge.TritonModule, monkeypatch: pytest.MonkeyPatch
) -> None:
    trips: list[str] = []
    parse = engine.parse_expanded

    def counted(text: str) -> engine.Module:
        trips.append(text)
        return parse(text)

    monkeypatch.setattr(engine, "parse_expanded", counted)
    bridge.run_passes(module, [Mark(), MarkStores(), NeedsDot(), Mark()], make_context)
    assert Mark.log == ["mark", "mark-stores", "mark"]
    assert len(trips) == 1


def test_what_a_pass_makes_the_next_one_touches(module: bridge.TritonModule) -> None:
    assert bridge.run_passes(module, [NeedsPrint()], make_context) is module
    bridge.run_passes(module, [NeedsPrint(), MakesDot(), NeedsPrint()], make_context)
    assert Mark.log == ["needs-print"]


def test_each_pass_can_be_looked_at(module: bridge.TritonModule) -> None:
    seen: list[tuple[str, bool]] = []
    bridge.run_passes(
        module,
        [_Identity(), Mark(), NeedsDot()],
        make_context,
        lambda a_pass, text: seen.append((a_pass.name, "tt.marked" in text())),
    )
    assert seen == [("identity", False), ("mark", True)]


def _reproducer(failure: PassFailure) -> str:
    return Path(re.findall(r"reproducer: (\S+)", str(failure))[0]).read_text()


@pytest.mark.parametrize(
    ("culprit", "reason"),
    [
        (Raises, r"pass 'raises' raised KeyError: 'lost' \(.*test_bridge.py:\d+, in run\)"),
        (ErasesUsed, r"pass 'erases-used' raised ValueError: .*still used by 'tt.store'"),
        (BreaksDominance, r"'breaks-dominance' left invalid IR:\nkernel.mlir:4:5: error: .*domin"),
        (BreaksTypes, r"pass 'breaks-types' left invalid IR:\nkernel.mlir:3:10: error: .*bitcast"),
    ],
)
def test_failures_name_the_pass(
    module: bridge.TritonModule, culprit: type[Pass], reason: str
) -> None:
    with pytest.raises(PassFailure, match=reason) as caught:
        bridge.run_passes(module, [culprit()], make_context)
    text = _reproducer(caught.value)
    assert text.startswith(f"// RUN: tilepass-opt %s --target cuda:90 -p {culprit.name}")
    replayed = bridge.load(text, "reproducer.mlir")
    assert replayed.str() == module.str()


def test_the_culprit_among_several_is_found(module: bridge.TritonModule) -> None:
    with pytest.raises(PassFailure, match="pass 'breaks-types' left invalid IR") as caught:
        bridge.run_passes(module, [Mark(), BreaksTypes(), _Identity()], make_context)
    assert "-p mark,breaks-types" in _reproducer(caught.value)


def test_a_refusal_of_the_pass_is_its_message(module: bridge.TritonModule) -> None:
    with pytest.raises(PassFailure, match=r"^pass 'refuses': flatten=on cannot") as caught:
        bridge.run_passes(module, [Refuses()], make_context)
    assert "reproducer" not in str(caught.value)


def test_no_room_for_the_reproducer(
    module: bridge.TritonModule, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("tempfile.mkstemp", full)
    with pytest.raises(PassFailure, match=r"could not be written: .*No space left"):
        bridge.run_passes(module, [Raises()], make_context)


def test_capture_takes_what_native_code_writes(capfd: pytest.CaptureFixture[str]) -> None:
    with bridge.capture_diagnostics() as outer:
        os.write(2, b"f.py:1:2: error: outer\n")
        with bridge.capture_diagnostics() as inner:
            os.write(2, b'loc("g.py":3:4): error: first\nmore\nloc(unknown): note: why\n')
        assert inner.diagnostics[0].location == SourceLocation("g.py", 3, 4)
    assert inner.diagnostics[0].message == "first\nmore"
    assert [note.message for note in inner.diagnostics[0].notes] == ["why"]
    assert outer.diagnostics[0].format() == "f.py:1:2: error: outer"
    assert "first" in capfd.readouterr().err


def test_capture_keeps_what_an_exception_explains(capfd: pytest.CaptureFixture[str]) -> None:
    def fail() -> None:
        os.write(2, b"dump\nerror: bad\n")
        raise RuntimeError

    with pytest.raises(RuntimeError), bridge.capture_diagnostics() as captured:
        fail()
    assert [diagnostic.message for diagnostic in captured.diagnostics] == ["bad"]
    assert capfd.readouterr().err == ""
    captured.forward()
    assert capfd.readouterr().err == "dump\n"


def test_source_excerpts_and_modules_are_no_part_of_a_message() -> None:
    text = (
        "k.py:3:4: error: 'tt.dot' op is wrong\n    acc = tl.dot(a, b)\n          ^\n"
        'k.py:3:4: note: see current operation: %0 = "tt.dot"()\n'
        "module {\n  k.py is here\n}\n{-#\n  mlir_reproducer: 1\n#-}\nk.py:1:1: error: failed\n"
    )
    first, second = bridge.parse_diagnostics(text)[0]
    assert first.message == "'tt.dot' op is wrong"
    assert first.notes[0].message == 'see current operation: %0 = "tt.dot"()'
    assert (second.message, second.location) == ("failed", SourceLocation("k.py", 1, 1))


def test_threads_share_stderr() -> None:
    def load(number: int) -> None:
        for _ in range(20):
            with pytest.raises(ParseError, match=f"^f{number}.mlir:"):
                bridge.load("module {", f"f{number}.mlir")

    threads = [threading.Thread(target=load, args=(number,)) for number in range(4)]
    failed: list[object] = []
    hook, threading.excepthook = threading.excepthook, failed.append
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        threading.excepthook = hook
    assert failed == []


@pytest.mark.parametrize(
    ("constant", "resources"),
    [
        (f'dense<"0x{"01A0" * 64}"> : tensor<128xi8>', ""),
        (
            "dense_resource<weights> : tensor<4xi8>",
            '{-#\n  dialect_resources: {\n    builtin: {\n      weights: "0x0100000001020304"\n'
            "    }\n  }\n#-}\n",
        ),
    ],
)
def test_blobs_make_the_trip(constant: str, resources: str) -> None:
    text = FUNCTION.replace("%y =", f"%blob = arith.constant {constant}\n    %y =") + resources
    module = bridge.load(text, "kernel.mlir")
    after = bridge.run_passes(module, [_Identity()], make_context)
    # A context renames a resource whose name it holds already.
    trip, before = (re.sub(r"weights(_\d+)*", "weights", text.str()) for text in (after, module))
    assert trip == before
    assert constant in before


def test_unknown_dialects_stay_out(module: bridge.TritonModule) -> None:
    class MakesUnknown(_TestPass):
        name = "makes-unknown"

        def run(self, module: engine.Module, context: PassContext) -> None:
            add = self.operation(module, "arith.addi")
            place = engine.ir.InsertionPoint(add)
            engine.ir.Operation.create("my.op", loc=add.location, ip=place)

    with pytest.raises(PassFailure, match=r'invalid IR:\nerror: .*\n  in: "my.op"'):
        bridge.run_passes(module, [MakesUnknown()], make_context)


def test_a_child_forked_during_a_capture_can_parse() -> None:
    inside, done = threading.Event(), threading.Event()

    def hold() -> None:
        with bridge.capture_diagnostics():
            inside.set()
            done.wait(20)

    thread = threading.Thread(target=hold)
    thread.start()
    inside.wait(20)
    child = os.fork()
    if not child:
        bridge.load(FUNCTION, "kernel.mlir")
        os._exit(0)
    done.set()
    thread.join()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.mark.parametrize("severity", ["error", "warning"])
def test_an_error_that_the_parser_goes_on_after(
    severity: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Triton returns a module and says that something is wrong with it: then it is wrong."""
    stock = modules.triton_ir

    class Parser:
        @staticmethod
        def parse_mlir_module(path: str, context: object) -> object:
            os.write(2, f"{path}:3:4: {severity}: this is odd\n".encode())
            return stock.parse_mlir_module(path, context)

    context = bridge.new_context()
    monkeypatch.setattr(modules, "triton_ir", Parser)
    if severity == "error":
        with pytest.raises(ParseError, match=r"^f\.mlir:3:4: error: this is odd$"):
            bridge.load(FUNCTION, "f.mlir", context)
        return
    monkeypatch.setattr(Parser, "builder", stock.builder, raising=False)
    bridge.load(FUNCTION, "f.mlir", context)
    assert "warning: this is odd" in capfd.readouterr().err
