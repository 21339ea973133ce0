"""From the text of a pipeline to passes at their places, whatever the compiler."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from tilepass.core.anchor import LAST_STAGE, MLIR_STAGES, TRACE, Anchor, language_of
from tilepass.core.errors import (
    AnchorError,
    OptionError,
    UnknownPassError,
    UnsupportedVersionError,
)
from tilepass.core.pass_base import ON_FAILURE, OnFailure, Pass, Placed
from tilepass.core.pipeline_spec import PipelineItem, parse_pipeline
from tilepass.core.registry import instantiate, load_file


def place_passes(
    pipeline_text: str,
    load: Iterable[str | Path] = (),
    *,
    on_failure: str = "stop",
    quiet: bool = False,
) -> tuple[Placed, ...]:
    """The passes of a pipeline at the anchors given there, or at their own.

    `load` names Python files with passes; `quiet` is for `load_file`. Imports the passes, but no
    compiler. Raises PipelineSyntaxError, UnknownPassError, OptionError, and AnchorError for a place
    in the other compiler or other than that of a pass that cannot be moved.
    """
    mode: OnFailure | None = next((each for each in ON_FAILURE if each == on_failure), None)
    if mode is None:
        raise OptionError(f"on-failure: '{on_failure}' is not one of {', '.join(ON_FAILURE)}")
    for path in load:
        load_file(path, quiet=quiet)
    placed: list[Placed] = []
    for item in parse_pipeline(pipeline_text):
        instance = _instantiate(item)
        placed.append(Placed(instance, item.anchor or instance.anchor, mode))
        _check_language(placed[-1])
        _check_place(placed[-1])
    return tuple(placed)


def _check_language(placed: Placed) -> None:
    """Raise AnchorError for a pass of one compiler at a place where only the other has modules.

    Whose it is its own anchor says; one that takes every module (`touches` is empty) is nobody's.
    """
    instance, asked_for = placed.instance, language_of(placed.anchor)
    own = language_of(instance.anchor)
    # A stage of neither compiler is a misspelt one of Triton's: a compilation names those it has.
    if own is None or not instance.touches or own == (asked_for or "triton"):
        return
    at_home = (
        f"the CuTe DSL, whose only place is {Anchor.end_of(TRACE)}"
        if own == "cute"
        else f"Triton, whose stages are {', '.join((*MLIR_STAGES, LAST_STAGE))}"
    )
    raise AnchorError(
        f"pass '{instance.name}' cannot run at '{placed.anchor}': it is made for {at_home}"
    )


def _check_place(placed: Placed) -> None:
    """Raise AnchorError for a pass that cannot be moved and is."""
    instance, anchor = placed.instance, placed.anchor
    if instance.movable or anchor.if_present() == instance.anchor.if_present():
        return
    raise AnchorError(
        f"pass '{instance.name}' cannot run at '{anchor}': what it rests on holds at "
        f"'{instance.anchor}' alone"
    )


def _instantiate(item: PipelineItem) -> Pass:
    try:
        return instantiate(item)
    except UnknownPassError as error:
        if not _is_of_triton(item.name):
            raise
        raise UnknownPassError(
            f"'{item.name}' is a pass of Triton, which a compilation runs by itself; run it on an "
            "IR file with tilepass-opt, or with tilepass dump-ir --only-pipeline"
        ) from error


def _is_of_triton(name: str) -> bool:
    """Whether the installed Triton has such a pass; loads Triton, so for error messages only."""
    from tilepass.core.versions import triton_version

    try:
        triton_version()
    except UnsupportedVersionError:
        return False
    from tilepass.frontends.triton.builtin_passes import discover

    return name in discover()
