# The rewriter of the MLIR Python bindings (nvidia-cutlass-dsl 4.8), as far as tilepass uses it.

import enum
from collections.abc import Callable, Sequence

from cutlass._mlir.ir import (
    Context,
    InsertionPoint,
    Module,
    Operation,
    OpView,
    Value,
    _OperationBase,  # pyright: ignore[reportPrivateUsage]
)

class PatternRewriter:
    @property
    def ip(self) -> InsertionPoint: ...
    def replace_op(self, op: _OperationBase, new_op: _OperationBase | Sequence[Value]) -> None: ...
    def erase_op(self, op: _OperationBase) -> None: ...

class RewritePatternSet:
    def __init__(self, context: Context | None = None) -> None: ...
    # A pattern returns a true value for "no match".
    def add(
        self,
        root: str | type[OpView],
        fn: Callable[[Operation, PatternRewriter], object],
        benefit: int = 1,
    ) -> None: ...
    def freeze(self) -> FrozenRewritePatternSet: ...

class FrozenRewritePatternSet: ...

class GreedyRewriteStrictness(enum.Enum):
    ANY_OP = ...
    EXISTING_AND_NEW_OPS = ...
    EXISTING_OPS = ...

class GreedySimplifyRegionLevel(enum.Enum):
    DISABLED = ...
    NORMAL = ...
    AGGRESSIVE = ...

class GreedyRewriteConfig:
    max_iterations: int
    max_num_rewrites: int
    use_top_down_traversal: bool
    enable_folding: bool
    enable_constant_cse: bool
    strictness: GreedyRewriteStrictness
    region_simplification_level: GreedySimplifyRegionLevel

def apply_patterns_and_fold_greedily(
    module: Module | _OperationBase,
    set: FrozenRewritePatternSet,
    config: GreedyRewriteConfig | None = None,
) -> None: ...
def walk_and_apply_patterns(op: _OperationBase, set: FrozenRewritePatternSet) -> None: ...
