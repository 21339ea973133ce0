"""What the CuTe compiler makes of a module, found on a copy: lowered IR, PTX, a cubin.

The compiler is a pass pipeline, `builtin.module(cute-to-nvvm{...})`, with another one before it for
`cute.experimental`. Parsed and printed, `cute-to-nvvm` shows its passes. Those up to
`strength-reduction`, after which only arith, scf, llvm, nvvm and vector are left, run one by one
just as well; the rest does not, as it passes objects on that have no text.
"""

from __future__ import annotations

import functools
import io
import re
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tilepass.core.errors import TilepassError, UnsupportedVersionError
from tilepass.core.pass_base import Target
from tilepass.ir.engine import Module, Operation, ir, new_context, passmanager

ANALYSIS_END = "strength-reduction"
# Passes of the front part that the bindings do not register by name. They only simplify, or expand
# single operations, and what they would change means the same without them.
_UNNAMED = frozenset(
    {
        "int-range-optimizations",
        "convert-vector-to-scf",
        "arith-expand",
        "convert-math-to-funcs",
    }
)
_OPENING, _CLOSING = "{(", "})"
# `output-json-path=` without a value is printed, but not parsed.
_EMPTY_OPTION = re.compile(r"[\w-]+=(?=\s|\})")

AfterPass = Callable[[str, Module], None]


@dataclass(frozen=True)
class CuteBinary:
    """What a module was compiled to: PTX, and a cubin that may hold several kernels."""

    ptx: str
    cubin: bytes


def chip_of(target: Target) -> str:
    """NVIDIA's name of a target with the instructions of its own: `sm_90a`.

    Raises TilepassError for a target that CuTe has no compiler for.
    """
    if target.backend != "cuda" or not isinstance(target.arch, int):
        raise TilepassError(f"CuTe modules are compiled for cuda targets, not for {target}")
    return f"sm_{target.arch}{'a' if target.arch >= 90 else ''}"


def stock_pipeline(chip: str) -> str:
    """The pipeline with which the DSL compiles for a chip where the user asks for nothing else."""
    return (
        "builtin.module(cute-to-nvvm{check-inline-asm=false cubin-format=bin opt-level=3 "
        f"cubin-chip={chip} enable-cuda-dialect=true cuda-dialect-external-module=true}})"
    )


def clone(module: Module, context: ir.Context | None = None) -> Module:
    """A copy in the same context or in another one, with its locations."""
    buffer = io.BytesIO()
    module.operation.write_bytecode(buffer)
    return ir.Module.parse(buffer.getvalue(), context or module.context)


def lower_for_analysis(
    module: Module, pipeline: str, after_pass: AfterPass | None = None
) -> Module:
    """A copy after the passes of the compiler up to `strength-reduction`.

    `after_pass` is called after each with its text. The module is verified after the last one:
    after each of them it takes 40 % of the time. Raises TilepassError where a pass fails.
    """
    copy = clone(module)
    passes = front_passes(pipeline)
    with copy.context:
        for number, text in enumerate(passes, 1):
            manager = passmanager.PassManager.parse(f"builtin.module({text})")
            manager.enable_verifier(number == len(passes))
            _run(manager, copy.operation, text.partition("{")[0])
            if after_pass:
                after_pass(text, copy)
    return copy


def compile_copy(module: Module, pipeline: str) -> CuteBinary:
    """Compile a copy to PTX and a cubin, in its own folder. Raises TilepassError."""
    # The compiler of 4.6 registers each binary in the context, and finds this one there when it
    # comes to the module itself.
    copy = clone(module, new_context())
    with tempfile.TemporaryDirectory(prefix="tilepass-") as folder, copy.context:
        text = _with_dumps(pipeline, Path(folder, "kernel"))
        _run(passmanager.PassManager.parse(text), copy.operation, "cute-to-nvvm")
        # The compiler puts the chip into the names: `kernel.sm_90a.ptx`.
        ptx, cubin = (_only_file(Path(folder), suffix) for suffix in ("ptx", "cubin"))
        return CuteBinary(ptx.read_bytes().rstrip(b"\0").decode(), cubin.read_bytes())


@functools.cache
def front_passes(pipeline: str) -> tuple[str, ...]:
    """The passes of a pipeline up to `strength-reduction`, as text.

    What stands before `cute-to-nvvm` is one of them. Raises UnsupportedVersionError where the
    installed compiler's pipeline is not one that can be cut there.
    """
    *before, last = map(str.strip, split_passes(_inside_module(pipeline)))
    with ir.Context():
        whole = str(passmanager.PassManager.parse(f"builtin.module({last})"))
        passes = split_passes(_inside_module(whole))
        names = [text.partition("{")[0] for text in passes]
        if ANALYSIS_END not in names:
            raise _unsupported(f"its pipeline has no pass '{ANALYSIS_END}'")
        # Before 4.8 the pass runs twice.
        end = len(names) - names[::-1].index(ANALYSIS_END)
        front = [_EMPTY_OPTION.sub("", text) for text in passes[:end]]
        return (*before, *filter(_can_run_alone, front))


def _inside_module(pipeline: str) -> str:
    return pipeline.strip().removeprefix("builtin.module(").removesuffix(")")


def split_passes(text: str) -> list[str]:
    """The passes of a printed pipeline: split at the commas that no bracket holds."""
    passes: list[str] = []
    depth = start = 0
    for at, character in enumerate(text):
        depth += (character in _OPENING) - (character in _CLOSING)
        if character == "," and not depth:
            passes.append(text[start:at])
            start = at + 1
    return [*passes, text[start:]]


def _can_run_alone(text: str) -> bool:
    name = text.partition("{")[0]
    try:
        passmanager.PassManager.parse(f"builtin.module({text})")
    except ValueError as error:
        if name in _UNNAMED:
            return False
        reason = str(error).splitlines()[0]
        raise _unsupported(f"its pass '{name}' does not run alone: {reason}") from error
    return True


def _with_dumps(pipeline: str, stem: Path) -> str:
    """The pipeline with its PTX and cubin going to files of our own, and nowhere else."""
    text = re.sub(r"dump-(?:ptx|cubin|sass)-path=(?:'[^']*'|\S+) ?", "", pipeline)
    return text.replace(
        "cute-to-nvvm{", f"cute-to-nvvm{{dump-ptx-path='{stem}' dump-cubin-path='{stem}' ", 1
    )


def _only_file(folder: Path, suffix: str) -> Path:
    files = list(folder.glob(f"*.{suffix}"))
    if len(files) != 1:
        raise TilepassError(f"compiling the module gave {len(files)} {suffix} files, expected one")
    return files[0]


def _run(manager: passmanager.PassManager, operation: Operation, name: str) -> None:
    try:
        manager.run(operation)
    except ir.MLIRError as error:
        raise TilepassError(f"the CuTe compiler fails in '{name}': {error}") from error


def _unsupported(reason: str) -> UnsupportedVersionError:
    from importlib.metadata import version

    found = version("nvidia-cutlass-dsl")
    return UnsupportedVersionError(f"nvidia-cutlass-dsl {found} is not supported: {reason}")
