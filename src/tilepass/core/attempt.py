"""Matchers and planners on IR that they do not know: what they raise is a reason to refuse."""

from __future__ import annotations

import re
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar, TypeVarTuple

from tilepass.core.errors import OptionError

# Where an object lies in memory, in its default text: it differs from run to run.
_ADDRESS = re.compile(r" object at 0x[0-9a-f]+")
_Arguments = TypeVarTuple("_Arguments")
_Found = TypeVar("_Found")


@dataclass(frozen=True)
class NotUnderstood:
    """What a matcher or planner raised; as text it is the reason of a refusal."""

    error: Exception

    def __str__(self) -> str:
        last = traceback.extract_tb(self.error.__traceback__)[-1]
        said = _ADDRESS.sub("", " ".join(str(self.error).split()))
        kind = type(self.error).__name__
        return f"the pass does not understand this IR: {kind}: {said} ({last.name})"


def attempt(
    function: Callable[[*_Arguments], _Found], *arguments: *_Arguments
) -> _Found | NotUnderstood:
    """What a function returns that only looks at a module, or that it does not know what it sees.

    Not for what has begun to rewrite: a module that is half rewritten must not go on. Raises
    OptionError: what the user asked for is understood.
    """
    try:
        return function(*arguments)
    except OptionError:
        raise
    except Exception as error:
        return NotUnderstood(error)
