"""Copies of a module, lowered and compiled: what `PassContext.lower` and `.trial` stand on."""

from __future__ import annotations

from pathlib import Path

import pytest

from tilepass.core.errors import TilepassError, UnsupportedVersionError
from tilepass.core.pass_base import Target
from tilepass.frontends.cute.lowering import (
    chip_of,
    compile_copy,
    front_passes,
    lower_for_analysis,
    split_passes,
    stock_pipeline,
)
from tilepass.frontends.cute.trial import make_trial
from tilepass.ir.engine import Module, location_of, operations, parse_expanded, print_generic

FILE = Path(__file__).parent.parent / "lit_tests" / "opt" / "cute-lowering.mlir"
SM90 = Target("cuda", 90)
PIPELINE = stock_pipeline("sm_90a")


def module() -> Module:
    return parse_expanded(FILE.read_text())


def test_lowering_keeps_locations_and_the_module() -> None:
    original = module()
    before = print_generic(original)
    lowered = lower_for_analysis(original, PIPELINE)
    names = {operation.name for operation in operations(lowered)}
    assert not any(name.startswith("cute.") for name in names)
    (mma,) = (one for one in operations(lowered) if one.name == "nvvm.mma.sync")
    place = location_of(mma)
    assert place is not None
    line = next(
        n for n, text in enumerate(FILE.read_text().splitlines(), 1) if "cute.gemm(%mma" in text
    )
    assert place.line == line
    assert print_generic(original) == before


def test_every_step_of_lowering_is_shown() -> None:
    shown: list[str] = []
    lower_for_analysis(module(), PIPELINE, lambda text, _: shown.append(text))
    assert tuple(shown) == front_passes(PIPELINE)
    assert shown[-1] == "strength-reduction"
    assert "convert-cute-to-core" in shown


def test_what_stands_before_the_compiler_is_run_whole() -> None:
    """As `lir-to-cute-dsl` does in the pipeline of `cute.experimental`."""
    pipeline = PIPELINE.replace("cute-to-nvvm", "canonicalize, cute-to-nvvm")
    assert front_passes(pipeline) == ("canonicalize", *front_passes(PIPELINE))
    lowered = lower_for_analysis(module(), pipeline)
    assert print_generic(lowered) == print_generic(lower_for_analysis(module(), PIPELINE))


def test_compiling_leaves_the_module_and_no_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    original = module()
    before = print_generic(original)
    pipeline = PIPELINE.replace("cubin-chip", f"dump-ptx-path='{tmp_path}/a b' cubin-chip")
    binary = compile_copy(original, pipeline)
    assert ".target sm_90a" in binary.ptx
    assert binary.ptx.rstrip().endswith("}")
    assert binary.cubin.startswith(b"\x7fELF")
    assert print_generic(original) == before
    assert list(tmp_path.iterdir()) == []


def test_figures_of_a_trial() -> None:
    figures = make_trial(PIPELINE, SM90)(module())
    assert figures.registers > 0
    assert (figures.stack_bytes, figures.local_loads, figures.local_stores) == (0, 0, 0)
    # Nothing reads what the product gives.
    assert figures.mma_count == 0
    assert "EXIT" in figures.sass
    # The encoding of each instruction, in two halves.
    assert figures.sass.count("/* 0x") >= 2 * figures.sass.count("EXIT")


def test_a_module_without_a_kernel() -> None:
    with pytest.raises(TilepassError, match="gave 0 ptx files, expected one"):
        compile_copy(parse_expanded("func.func @f() { return }"), PIPELINE)


def test_what_the_assembler_does_not_take() -> None:
    wrong = 'llvm.inline_asm has_side_effects "no.such;", "" : () -> ()'
    text = FILE.read_text().replace("cuda.return", f"{wrong}\n      cuda.return")
    with pytest.raises(TilepassError, match="the CuTe compiler fails in 'cute-to-nvvm'"):
        compile_copy(parse_expanded(text), PIPELINE)


@pytest.mark.parametrize(
    ("target", "chip"),
    [(SM90, "sm_90a"), (Target("cuda", 120), "sm_120a"), (Target("cuda", 80), "sm_80")],
)
def test_chips(target: Target, chip: str) -> None:
    assert chip_of(target) == chip


def test_a_pipeline_that_cannot_be_cut() -> None:
    with pytest.raises(UnsupportedVersionError, match="has no pass 'strength-reduction'"):
        front_passes("builtin.module(canonicalize)")


def test_splitting_a_pipeline() -> None:
    text = "a,b{x=1 y=(2,3)},gpu.module(c,d),e"
    assert split_passes(text) == ["a", "b{x=1 y=(2,3)}", "gpu.module(c,d)", "e"]
