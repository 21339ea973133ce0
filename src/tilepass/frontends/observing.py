"""What observers of compilations are shown, whatever the compiler."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

from tilepass.core.pass_base import PassContext, Target

# Whose pass it is; or a file that takes the place of what passes made.
Origin = Literal["triton", "cute", "tilepass", "override"]


@dataclass(frozen=True)
class Compilation:
    """What an observer is told about a compilation.

    `key` is the name of its folder in Triton's cache before Triton encodes it, or the hash under
    which the CuTe DSL keeps it (both SHA-256).
    """

    key: str
    kernel: str
    language: str
    target: Target
    options: Mapping[str, object]


class StageObserver(Protocol):
    """Looks on while kernels are compiled.

    The calls about one compilation come from one thread, from `begin` to the last `after_stage`;
    other threads may compile at the same time. A text function must be called before the
    observer's method returns.
    """

    def begin(self, compilation: Compilation, source: Callable[[], str]) -> None:
        """A compilation starts from the IR that `source` prints."""

    def after_pass(
        self,
        stage: str,
        index: int,
        pass_text: str,
        origin: Origin,
        module_text: Callable[[], str],
    ) -> None:
        """A pass has run; `index` counts the passes of the compilation from 0."""

    def after_stage(self, stage: str, artifact: Callable[[], str | bytes]) -> None:
        """A stage is done; the artifact is text, or bytes for a binary."""


@runtime_checkable
class ContextObserver(Protocol):
    """An observer that also wants the remarks and decisions of each Python pass."""

    def before_pass(self, context: PassContext) -> None:
        """A Python pass is about to run with `context`; its `after_pass` comes from the same
        thread, and does not come if the pass fails."""


@runtime_checkable
class LocationObserver(Protocol):
    """An observer that says whether it wants locations in the texts; others are given them.

    Without them the IR of CuTe modules is in its pretty form, with them in the generic one.
    """

    @property
    def locations(self) -> bool:
        """Whether it wants them."""
        ...
