# MLIR's own pass manager in the Python bindings (nvidia-cutlass-dsl 4.8), as far as it is used.

from collections.abc import Callable

from cutlass._mlir.ir import (
    Context,
    _OperationBase,  # pyright: ignore[reportPrivateUsage]
)

class PassManager:
    def __init__(self, anchor_op: str = "any", context: Context | None = None) -> None: ...
    @staticmethod
    def parse(pipeline: str, context: Context | None = None) -> PassManager: ...
    def add(self, pipeline: str | Callable[..., object], name: str | None = None) -> None: ...
    def enable_verifier(self, enable: bool) -> None: ...
    def enable_timing(self) -> None: ...
    def enable_ir_printing(
        self,
        print_before_all: bool = False,
        print_after_all: bool = True,
        print_module_scope: bool = False,
        print_after_change: bool = False,
        print_after_failure: bool = False,
        large_elements_limit: int | None = None,
        large_resource_limit: int | None = None,
        enable_debug_info: bool = False,
        print_generic_op_form: bool = False,
        tree_printing_dir_path: str | None = None,
    ) -> None: ...
    def run(self, operation: _OperationBase) -> None: ...
