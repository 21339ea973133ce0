"""Why a pass leaves an operation as it is."""

from __future__ import annotations

import re
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar, TypeVarTuple

from tilepass.core.errors import OptionError

# Where an object lies in memory, in its default text: it differs from run to run.
_ADDRESS = re.compile(r" object at 0x[0-9a-f]+")
_Arguments = TypeVarTuple("_Arguments")
_Found = TypeVar("_Found")


@dataclass(frozen=True)
class Refusal:
    """Why a pass leaves `operation` alone (anything that remarks can be placed at), and `advice`:
    what its author could change. `PassContext.refuse` tells the user.

    A `harmless` one does not say that the rewrite would be wrong or not compile: where the author
    has asked for it in the source, that stays. `error` is what `attempt` caught.
    """

    operation: Any
    reason: str
    advice: str = ""
    harmless: bool = False
    error: Exception | None = None

    def __str__(self) -> str:
        return f"{self.reason}; {self.advice}" if self.advice else self.reason


def attempt(
    function: Callable[[*_Arguments], _Found], *arguments: *_Arguments, at: object
) -> _Found | Refusal:
    """What a function returns that only looks at a module, or, where it raises, the refusal to
    touch IR that it does not know: that of the operation `at`.

    Not for what has begun to rewrite: a module that is half rewritten must not go on. Raises
    OptionError: what the user asked for is understood.
    """
    try:
        return function(*arguments)
    except OptionError:
        raise
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        said = _ADDRESS.sub("", " ".join(str(error).split()))
        reason = f"the pass does not understand this IR: {type(error).__name__}: {said}"
        return Refusal(at, f"{reason} ({last.name})", harmless=True, error=error)
