"""Passes on IR that they do not know: in `auto` a remark and the kernel as it was, never an end of
the user's compilation; an error where the user insists; a failure where rewriting had begun."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.corpus.pass_context import make_context
from tests.ws_split_kernels import Nest
from tilepass.core.errors import OptionError, ParseError, PassFailure
from tilepass.core.pass_base import Target
from tilepass.core.pipeline_spec import parse_pipeline
from tilepass.core.registry import instantiate
from tilepass.frontends.triton import bridge
from tilepass.ir import engine
from tilepass.ir.checked_run import checked_run
from tilepass.ir.engine import Module, ir
from tilepass.passes.cute import cute_vectorize_copies, cute_zero_mma
from tilepass.passes.cute.cute_zero_mma import sites
from tilepass.passes.triton import (
    acc_multi_buffer,
    epilogue_warp_specialize,
    fix_dot_wait,
    flatten_loops,
    warp_specialize_legality,
)
from tilepass.passes.triton.epilogue_warp_specialize.windows import LayoutError

LIT_TESTS = Path(__file__).resolve().parents[1] / "lit_tests" / "passes" / "cute"
_ERRORS = [
    AssertionError(),
    AttributeError("none"),
    IndexError("3"),
    KeyError("x"),
    LayoutError("no"),
    ParseError("no"),
    TypeError("no"),
]
_EWS = "epilogue-warp-specialize"
# (pass, where its matcher or planner is looked up, its name)
_MATCHERS: list[tuple[str, Any, str]] = [
    (_EWS, epilogue_warp_specialize, "match"),
    (_EWS, epilogue_warp_specialize, "choose"),
    (_EWS, epilogue_warp_specialize, "nest_facts"),
    ("flatten-loops", flatten_loops, "match_nest"),
    ("acc-multi-buffer", acc_multi_buffer, "shape_of"),
    ("fix-dot-wait", fix_dot_wait, "find_uncovered_reads"),
    ("fix-dot-wait{registers=on}", fix_dot_wait, "find_overwrites"),
    ("warp-specialize-legality", warp_specialize_legality, "marked_function"),
]


def _raising(error: Exception) -> Callable[..., Any]:
    def raises(*_: object) -> Any:
        raise error

    return raises


def _run(module: Module, pipeline: str) -> tuple[str | None, str]:
    """How a pass failed, if it did, and what it remarked."""
    (item,) = parse_pipeline(pipeline)
    a_pass = instantiate(item)
    context = make_context(a_pass)
    if item.name == "acc-multi-buffer":
        context.target = Target("cuda", 100)
    problem = checked_run(a_pass, module, context)
    said = "; ".join(f"{each.kind}: {each.message}" for each in context.remarks.remarks)
    return problem.reason if problem else None, said


def _module(pipeline: str) -> Module:
    text = Nest().text()
    if pipeline.startswith("warp-specialize-legality"):
        at = text.rindex("  }\n  tt.return")
        text = f"{text[:at]}  }} {{tt.warp_specialize}}\n  tt.return{text[at + 15 :]}"
    return bridge.to_engine(bridge.load(text, "nest"))


@pytest.mark.parametrize("error", _ERRORS, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize(("pipeline", "owner", "name"), _MATCHERS)
def test_what_a_matcher_raises_is_a_refusal(
    pipeline: str, owner: Any, name: str, error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = _module(pipeline)
    before = engine.print_generic(module)
    monkeypatch.setattr(owner, name, _raising(error))
    problem, said = _run(module, pipeline)
    assert problem is None
    assert f"does not understand this IR: {type(error).__name__}" in said
    assert engine.print_generic(module) == before


@pytest.mark.parametrize(
    ("name", "owner", "matcher"),
    [
        ("cute-vectorize-copies", cute_vectorize_copies, "copy_loop"),
        ("cute-zero-mma-refused", sites, "fragment_of"),
        ("cute-zero-mma-auto", cute_zero_mma, "proven"),
    ],
)
def test_matchers_of_cute_modules(
    name: str, owner: Any, matcher: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (LIT_TESTS / f"{name}.mlir").read_text().partition("// -----")[0]
    module = engine.parse(text)
    before = engine.print_generic(module)
    monkeypatch.setattr(owner, matcher, _raising(KeyError("x")))
    pipeline = "cute-zero-mma" if "zero" in name else name
    problem, said = _run(module, pipeline)
    assert problem is None
    assert "missed: " in said
    assert "does not understand this IR: KeyError" in said
    assert engine.print_generic(module) == before


def test_a_forced_scheme_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(epilogue_warp_specialize, "match", _raising(KeyError("x")))
    with pytest.raises(PassFailure, match=r"scheme=cooperative, but .* does not understand"):
        _run(_module(_EWS), f"{_EWS}{{scheme=cooperative}}")


def test_what_the_user_asked_for_is_not_swallowed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(epilogue_warp_specialize, "match", _raising(OptionError("stages")))
    with pytest.raises(PassFailure, match="stages"):
        _run(_module(_EWS), _EWS)


def test_an_error_while_rewriting_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        epilogue_warp_specialize.PersistentNest, "move_invariant", _raising(KeyError("x"))
    )
    problem, _ = _run(_module(_EWS), _EWS)
    assert problem is not None
    assert "raised KeyError" in problem


_IN_AUTO = (
    _EWS,
    "flatten-loops",
    "fix-dot-wait{registers=on}",
    "warp-specialize-legality",
    "acc-multi-buffer",
)


@pytest.mark.parametrize("epilogue", ["bias", "residual", "pointers"])
def test_changed_kernels_are_refused_or_rewritten(epilogue: str) -> None:
    """Kernels with an attribute less, another number or another operand, that Triton accepts."""
    tried = 0
    for text in _changed(Nest(epilogue, n=32).text(), random.Random(epilogue), 25):
        tried += 1
        for pipeline in _IN_AUTO:
            problem, _ = _run(engine.parse(text), pipeline)
            assert problem is None, f"{pipeline}: {problem}\n{text}"
    assert tried >= 10


def _changed(text: str, choose: random.Random, count: int) -> Iterator[str]:
    original = bridge.generic_text(bridge.load(text, "nest"))
    for _ in range(count):
        module: Any = engine.parse(original)
        _change(choose.choice(engine.operations(module)[1:]), choose)
        changed = engine.print_generic(module)
        try:
            yield bridge.generic_text(bridge.load(changed, "changed"))
        except ParseError:
            continue


def _change(operation: engine.Operation, choose: random.Random) -> None:
    names = sorted(operation.attributes)
    like = [
        (index, other)
        for index, operand in enumerate(operation.operands)
        for view in operation.block.operations
        if view.operation != operation
        for other in view.results
        if other.type == operand.type
    ]
    if names and (not like or choose.random() < 0.5):
        name = choose.choice(names)
        value = operation.attributes[name]
        if isinstance(value, ir.IntegerAttr) and choose.random() < 0.7:
            operation.attributes[name] = ir.IntegerAttr.get(
                value.type, choose.choice((0, 1, 2, 64))
            )
        else:
            del operation.attributes[name]
    elif like:
        index, other = choose.choice(like)
        operation.operands[index] = other
