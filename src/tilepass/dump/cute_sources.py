"""Compiling what `dump-ir` was given where it is CuTe's: a file of IR, or a Python function."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

from tilepass.activate import enabled
from tilepass.core.errors import TilepassError
from tilepass.core.pass_base import Pass, PassContext, Target
from tilepass.core.versions import cute_version
from tilepass.dump.recorder import Recorder
from tilepass.frontends.contexts import make_context
from tilepass.frontends.cute.lowering import chip_of, stock_pipeline
from tilepass.frontends.cute.part import is_for_cute
from tilepass.frontends.cute.rewriting import rewrite
from tilepass.frontends.cute.tracing import Trace
from tilepass.frontends.cute.trial import make_trial
from tilepass.frontends.cute.watching import Watched
from tilepass.frontends.placed import place_passes
from tilepass.opt.engine_work import read_cute
from tilepass.opt.source import Part
from tilepass.subjects.kernel import load_function

# The DSL reads it when it is imported.
_ARCH_VARIABLE = "CUTE_DSL_ARCH"


def call_function(
    spec: str, target: Target, pipeline: str, load: Sequence[str], recorder: Recorder
) -> None:
    """Call a Python function without arguments, and record what it compiles for `target`.

    Raises TilepassError where there is no such function, it raises, or compiles nothing.
    """
    os.environ[_ARCH_VARIABLE] = chip_of(target)
    with enabled(pipeline, observers=[recorder], load=load):
        function = _find(spec)
        try:
            function()
        except TilepassError:
            raise
        except Exception as error:
            raise TilepassError(f"{spec}: {type(error).__name__}: {error}") from error


def compile_cute_file(
    source: Part, target: Target, pipeline: str, load: Sequence[str], recorder: Recorder
) -> None:
    """Run passes on a traced module in a file, and compile it, recording all steps.

    Raises TilepassError, with the place in the file where it does not parse.
    """
    module = read_cute(source)
    passes = place_passes(pipeline, load)
    for placed in passes:
        if not is_for_cute(placed):
            raise TilepassError(f"pass '{placed.instance.name}' does not run on CuTe modules")
    key = sha256(source.text.encode()).hexdigest()
    text = stock_pipeline(chip_of(target))
    trace = Trace(module, Path(source.file).stem, target, text, {"chip": chip_of(target)}, key)
    kernels = trace.kernels()
    if not kernels:
        raise TilepassError(f"{source.file}: there is no kernel in it (a cuda.kernel)")
    watched = Watched(trace, kernels, [recorder])

    def context_of(a_pass: Pass) -> PassContext:
        context = trace.context(a_pass, _make_context, make_trial)
        watched.before_pass(context)
        return context

    rewrite(module, passes, pipeline, context_of, watched.after_pass)
    watched.finish()


def _make_context(a_pass: Pass, target: Target, options: Any) -> PassContext:
    return make_context(a_pass.name, cute_version(), target, options)


def _find(spec: str) -> Callable[[], object]:
    function = load_function(spec)
    if parameters := getattr(function, "arg_names", None):
        raise TilepassError(
            f"{spec} is a kernel of Triton: give --signature, and --constexpr for what is "
            f"constant (parameters: {', '.join(parameters)})"
        )
    return function
