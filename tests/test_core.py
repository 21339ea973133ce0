"""Pipeline syntax, options, registry, anchors, decisions and remarks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pytest

from tilepass.core.anchor import Anchor
from tilepass.core.decisions import Choice, Fact, decide
from tilepass.core.diagnostics import Diagnostic, SourceLocation
from tilepass.core.errors import (
    AnchorError,
    OptionError,
    PipelineSyntaxError,
    TilepassError,
    UnknownPassError,
)
from tilepass.core.options import build_options, describe_options
from tilepass.core.pass_base import Pass, PassContext
from tilepass.core.pipeline_spec import PipelineItem, parse_pipeline
from tilepass.core.registry import find_pass, load_file, source_hash
from tilepass.core.remarks import Remark, RemarkSink
from tilepass.passes.triton import strip_assume

PASS_FILE = """
from tilepass.core.pass_base import Anchor, Pass
from tilepass.core.registry import register

@register
class Sample(Pass):
    name = "{name}"
    anchor = Anchor.end_of("ttir")
    def run(self, module, context):
        pass
"""


class Example(Pass):
    name = "example"
    anchor = Anchor.end_of("ttir")

    @dataclass(frozen=True)
    class Options:
        mode: Literal["auto", "on"] = "auto"
        c_buffers: Literal["auto"] | int = "auto"
        strict: bool = False

    def run(self, module: Any, context: PassContext) -> None:
        del module, context


class Labelled(Pass):
    name = "labelled"
    anchor = Anchor.end_of("ttir")

    @dataclass(frozen=True)
    class Options:
        label: str = ""

    def run(self, module: Any, context: PassContext) -> None:
        del module, context


def test_pipeline_with_options_and_anchor() -> None:
    pipeline = parse_pipeline("a{x=1,y=two}, b@after:triton-pass#1,c")
    assert [item.name for item in pipeline] == ["a", "b", "c"]
    assert dict(pipeline.items[0].options) == {"x": "1", "y": "two"}
    assert pipeline.items[1].anchor == Anchor.after("triton-pass", 1)
    assert str(pipeline) == "a{x=1,y=two},b@after:triton-pass#1,c"


def test_builtin_module_form_and_blank_separated_options() -> None:
    pipeline = parse_pipeline("builtin.module(a,b{x=1 y={2, 3} flag})")
    assert dict(pipeline.items[1].options) == {"x": "1", "y": "{2, 3}", "flag": "true"}


def test_quoted_option_values() -> None:
    text = """a{x="one, two" y='it}s' z="" v="1",w="\\"\\\\"}"""
    pipeline = parse_pipeline(text)
    expected = {"x": "one, two", "y": "it}s", "z": "", "v": "1", "w": '"\\'}
    assert dict(pipeline.items[0].options) == expected
    assert str(pipeline) == r"""a{x="one, two",y="it}s",z="",v=1,w="\"\\"}"""


@pytest.mark.parametrize(
    "value", ["", " ", "'", '"', "a'b", "\\", '\\"', "{", "{a b}", "}", "a,b", "\n", "'a'", "[(]"]
)
def test_any_option_value_survives_being_written(value: str) -> None:
    item = PipelineItem("a", {"x": value, "y": "1"})
    assert dict(parse_pipeline(str(item)).items[0].options) == item.options
    labelled = Labelled(Labelled.Options(value))
    assert parse_pipeline(str(labelled)).items[0].options["label"] == value


def test_empty_pipeline() -> None:
    assert not parse_pipeline("")
    assert not parse_pipeline("builtin.module()")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,,b", "expected a pass name"),
        ("a{x=1", "expected an option name or '}'"),
        ("a{x=}", "expected a value"),
        ("a{x=1,x=2}", "given twice"),
        ("a b", "expected ','"),
        ("builtin.module(a", "expected ',' or ')'"),
        ("a@middle:ttir", "expected start:STAGE"),
        ("a,", "expected a pass name"),
        ('a{x="1}', "this quote is not closed"),
        ('a{x="1"y=2}', "expected ',' or '}' after the quoted value"),
        ("builtin.module(tt.func(a))", "'tt.func(...)': only builtin.module(...) can hold passes"),
        ("func.func(a)", "'func.func(...)': only builtin.module(...) can hold passes"),
    ],
)
def test_pipeline_errors_point_at_the_place(text: str, message: str) -> None:
    with pytest.raises(PipelineSyntaxError) as caught:
        parse_pipeline(text)
    assert message in str(caught.value)
    assert str(caught.value).endswith("^")


def test_options_are_typed() -> None:
    given = {"mode": "on", "c-buffers": "2", "strict": "true"}
    assert build_options(Example, given) == Example.Options("on", 2, True)
    assert build_options(Example, {"c_buffers": "auto"}).c_buffers == "auto"
    assert str(Example(Example.Options("on", 2))) == "example{mode=on,c-buffers=2,strict=false}"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"mod": "on"}, "no option 'mod'; did you mean 'mode'?"),
        ({"mode": "off"}, "'off' is not one of auto, on"),
        ({"c-buffers": "many"}, "'many' is not one of auto or an integer"),
        ({"strict": "maybe"}, "'maybe' is not true or false"),
    ],
)
def test_option_errors_name_pass_and_option(given: Mapping[str, str], message: str) -> None:
    with pytest.raises(OptionError) as caught:
        build_options(Example, given)
    assert "example" in str(caught.value)
    assert message in str(caught.value)


def test_options_can_be_listed() -> None:
    assert describe_options(Example)[0] == ("mode", "one of auto, on", "auto")


def test_unknown_pass_names_the_nearest(tmp_path: Path) -> None:
    file = tmp_path / "sample.py"
    file.write_text(PASS_FILE.format(name="sample-of-a-pass"))
    assert load_file(file) == ["sample-of-a-pass"]
    with pytest.raises(UnknownPassError, match="did you mean 'sample-of-a-pass'"):
        find_pass("sample-of-pass")


def test_an_edited_file_is_a_new_pass(tmp_path: Path) -> None:
    file = tmp_path / "edited.py"
    file.write_text(PASS_FILE.format(name="edited"))
    load_file(file)
    first = source_hash(find_pass("edited"))
    assert load_file(file) == ["edited"]
    assert source_hash(find_pass("edited")) == first
    file.write_text(PASS_FILE.format(name="edited") + "\n# changed\n")
    load_file(file)
    assert source_hash(find_pass("edited")) != first


def test_a_file_that_replaces_a_pass_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # The test replaces passes of tilepass.
    monkeypatch.setattr("tilepass.core.registry._registered", {})
    first, second, ours = (tmp_path / f"{name}.py" for name in ("first", "second", "ours"))
    first.write_text(PASS_FILE.format(name="replaced"))
    second.write_text(PASS_FILE.format(name="replaced") + "\n")
    load_file(first)
    load_file(first)
    first.write_text(PASS_FILE.format(name="replaced") + "\n# edited\n")
    load_file(first)
    load_file(str(strip_assume.__file__))
    assert capsys.readouterr().err == ""
    load_file(second)
    load_file(second)
    assert capsys.readouterr().err == f"warning: {second}: replaces the pass 'replaced'\n"
    load_file(first, quiet=True)
    assert capsys.readouterr().err == ""
    ours.write_text(PASS_FILE.format(name="strip-assume"))
    load_file(ours)
    assert capsys.readouterr().err == f"warning: {ours}: replaces the pass 'strip-assume'\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [("x = 1\n", "registers no pass"), ("raise ValueError('broken')\n", "ValueError: broken")],
)
def test_load_errors_name_the_file(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "bad.py"
    file.write_text(text)
    with pytest.raises(TilepassError, match=message) as caught:
        load_file(file)
    assert "bad.py" in str(caught.value)


def test_anchor_round_trip() -> None:
    for text in ("start:ttir", "end:ttgir", "before:a-b", "after:a-b#2"):
        assert str(Anchor.parse(text)) == text
    with pytest.raises(AnchorError):
        Anchor.parse("start:ttir#1")


def test_decision_precedence() -> None:
    facts: dict[str, Fact] = {"k": 1}
    model, default = Choice("on", "model"), Choice("off", "default")

    def run(forced: str | None, modelled: Choice | None) -> str:
        return decide(
            "flatten",
            facts,
            forced=forced,
            model=lambda facts: modelled,
            default=default,
        ).source

    assert run("on", model) == "forced"
    assert run(None, model) == "cost-model"
    assert run(None, None) == "default"


def test_remark_format_and_listener() -> None:
    heard: list[Remark] = []
    place = SourceLocation("kernel.py", 3, 5)
    sink = RemarkSink("example", lambda where: place, (heard.append,))
    sink.missed(object(), "no loop")
    assert heard == sink.remarks
    assert heard[0].format() == "kernel.py:3:5: remark: [example] missed: no loop"


def test_diagnostic_with_note() -> None:
    note = Diagnostic("note", "see here", SourceLocation("f.mlir", 1, 2))
    error = Diagnostic("error", "bad", SourceLocation("f.mlir", 3, 4), (note,))
    assert error.format() == "f.mlir:3:4: error: bad\nf.mlir:1:2: note: see here"


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("name = 'Two words'", "its name is 'Two words', expected a text like 'my-pass'"),
        ("anchor = 'end:ttir'", "its anchor is 'end:ttir', expected an Anchor"),
        ("touches = 'scf.for'", "its touches are 'scf.for', expected a tuple of operation names"),
        ("Options = dict", "its Options are not a dataclass"),
        ("Options = dataclasses.make_dataclass('O', ['n'])", "its options need defaults: n"),
        ("touches = (1,)", "its touches are (1,), expected a tuple of operation names"),
        ("run = Pass.run", "it has no method 'run(self, module, context)'"),
        (
            "run = lambda self: None",
            "its run cannot be called with a module and a context (too many positional arguments); "
            "expected a method run(self, module, context)",
        ),
        (
            "async def run(self, module, context): pass",
            "its run is a coroutine or a generator; expected a method run(self, module, context)",
        ),
    ],
)
def test_a_class_that_no_pipeline_could_run(tmp_path: Path, line: str, problem: str) -> None:
    file = tmp_path / "bad.py"
    file.write_text(f"import dataclasses\n{PASS_FILE.format(name='sample-bad')}    {line}\n")
    with pytest.raises(TilepassError) as caught:
        load_file(file)
    place = f"{file}:{_line(file, '@register')}"
    assert str(caught.value) == f"--load {file}: pass class 'Sample': {problem} ({place})"


def _line(file: Path, text: str) -> int:
    """The number of the line that holds a text."""
    lines = file.read_text().splitlines()
    return 1 + next(index for index, line in enumerate(lines) if text in line)


def test_a_file_of_passes_that_exits(tmp_path: Path) -> None:
    file = tmp_path / "exits.py"
    file.write_text("raise SystemExit(3)\n")
    with pytest.raises(TilepassError, match=r"exits\.py: SystemExit: 3"):
        load_file(file)


def test_option_of_a_type_that_has_no_text() -> None:
    class Listing(Pass):
        name = "listing"
        anchor = Anchor.end_of("ttir")

        @dataclass(frozen=True)
        class Options:
            sizes: tuple[int, ...] = ()

        def run(self, module: Any, context: PassContext) -> None:
            del module, context

    with pytest.raises(OptionError, match="pass 'listing', option 'sizes': a pipeline cannot give"):
        build_options(Listing, {"sizes": "1"})
