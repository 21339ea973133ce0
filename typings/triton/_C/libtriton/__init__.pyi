# Triton's native module. Its objects are `Any`: they change from release to release.

from typing import Any

ir: Any
passes: Any
nvidia: Any
amd: Any
llvm: Any
interpreter: Any
native_specialize_impl: Any
