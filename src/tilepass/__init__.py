"""tilepass: compiler passes in Python for Triton IR and CuTe DSL IR."""

from __future__ import annotations

# First: it keeps what the other modules are made from.
from tilepass import executed as executed

# Importing `typing` would cost every program that starts with TILEPASS set 8 ms.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tilepass.activate import enabled as enabled

__version__ = "0.2.0"


def __getattr__(name: str) -> Any:
    """`tilepass.enabled`, imported when it is used: `import tilepass` must cost nothing."""
    if name == "enabled":
        from tilepass.activate import enabled

        return enabled
    raise AttributeError(f"module 'tilepass' has no attribute '{name}'")
