"""The steps of a pipeline: passes of tilepass and passes of Triton, by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from tilepass.core.errors import AnchorError, UnknownPassError, nearest
from tilepass.core.pass_base import Pass, Target
from tilepass.core.pipeline_spec import Pipeline, PipelineItem
from tilepass.core.registry import instantiate, is_at_hand, pass_names

if TYPE_CHECKING:
    from tilepass.frontends.triton.run_builtin import BuiltinRun

# For checking options before any module is read: the architecture is not what is checked.
_ANY_TARGET = Target("cuda", 90)

Step: TypeAlias = "Pass | BuiltinRun"


def resolve(
    pipeline: Pipeline, target: Target | None, flags_known: tuple[str, ...] = ()
) -> list[Step]:
    """The steps of a pipeline, their options checked.

    `flags_known`: see OptOptions. Raises UnknownPassError, OptionError, AnchorError.
    """
    return [_resolve(item, target, flags_known) for item in pipeline]


def _resolve(item: PipelineItem, target: Target | None, flags_known: tuple[str, ...]) -> Step:
    if item.anchor:
        raise AnchorError(
            f"'{item}': tilepass-opt runs passes in the order in which they are written; "
            f"leave out '@{item.anchor}', which is for compilations"
        )
    if is_at_hand(item.name):
        return instantiate(item)
    # Here and not above: they load Triton.
    from tilepass.frontends.triton.builtin_passes import discover
    from tilepass.frontends.triton.run_builtin import BuiltinRun

    builtin = discover().get(item.name)
    if builtin is None and item.name in pass_names():
        return instantiate(item)
    if builtin is None:
        what = f"flag or pass '--{item.name}'" if flags_known else f"pass '{item.name}'"
        known = [*pass_names(), *discover(), *flags_known]
        hint = "--list-passes lists all passes"
        if flags_known and item.name[0] in "op":
            hint += f"; the value of -{item.name[0]} follows after a blank"
        raise UnknownPassError(f"unknown {what}{nearest(item.name, known)} ({hint})")
    step = BuiltinRun(builtin, item.options)
    step.check(target or _ANY_TARGET)
    return step
