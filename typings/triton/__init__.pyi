# Triton is untyped and changes from release to release: what is not typed here is `Any`.
#
# Modules without a stub in this folder are taken from the installed Triton.

from typing import Any

__version__: str

def __getattr__(name: str) -> Any: ...
