"""Builders make IR that Triton accepts; guards turn crashes into exceptions."""

from __future__ import annotations

import pytest

from tilepass.frontends.triton import bridge
from tilepass.ir import engine
from tilepass.ir.build import Builder, remove_attribute, set_attribute
from tilepass.ir.guards import guarded
from tilepass.ir.layouts import Blocked, MemDescType, SwizzledShared, TensorType

FUNCTION = """
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90",
                   "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @f(%n: i32) {
    tt.return
  }
}
"""
BLOCKED = Blocked(
    size_per_thread=(1, 1), threads_per_warp=(1, 32), warps_per_cta=(4, 1), order=(1, 0)
)
SHARED = SwizzledShared(vec=1, per_phase=1, max_phase=1, order=(1, 0))


class Function:
    """An empty function in the engine, and the way to see what Triton makes of it."""

    def __init__(self) -> None:
        self._native = bridge.load(FUNCTION, "f.mlir")
        self.module = bridge.to_engine(self._native)
        self.operation = self.module.body.operations[0].operation
        self.body = self.operation.regions[0].blocks[0]
        self.builder = Builder.before(self.body.operations[0].operation)
        self.argument = self.body.arguments[0]

    def printed(self) -> str:
        assert engine.verify(self.module) == []
        return bridge.from_engine(self.module, self._native.context).str_nodebug()


@pytest.fixture
def function() -> Function:
    return Function()


def test_arithmetic(function: Function) -> None:
    builder, n = function.builder, function.argument
    two = builder.constant(2)
    less = builder.compare("slt", builder.integer("addi", n, two), builder.program_id(1))
    wide = builder.cast("extsi", builder.select(less, n, two), builder.type("i64"))
    builder.cast("trunci", wide, builder.type("i1"))
    builder.splat(two, builder.type(TensorType((4, 32), "i32", BLOCKED)))
    builder.constant(True, "tensor<8xi1>")
    builder.num_programs()
    printed = function.printed()
    assert "arith.constant 2 : i32" in printed
    assert "arith.cmpi slt, %0, %1 : i32" in printed
    assert "tt.get_program_id y : i32" in printed
    assert "arith.trunci" in printed
    assert "dense<true> : tensor<8xi1>" in printed
    assert "tt.splat %c2_i32 : i32 -> tensor<4x32xi32, #blocked>" in printed


def test_loop_and_branch(function: Function) -> None:
    builder, n = function.builder, function.argument
    one = builder.constant(1)
    loop = builder.loop(one, n, one, [n], {"tt.flatten": "unit", "tt.num_stages": "3 : i32"})
    inside = Builder.at_end(loop.body, builder.location)
    condition = inside.compare("eq", loop.induction_variable, one)
    branch, then, otherwise = inside.if_(condition, [n.type])
    Builder.at_end(then, builder.location).yield_([one])
    Builder.at_end(otherwise, builder.location).yield_([loop.body.arguments[1]])
    inside.yield_([branch.results[0]])
    printed = function.printed()
    assert "scf.for %arg1 = %c1_i32 to %arg0 step %c1_i32 iter_args(%arg2 = %arg0)" in printed
    assert "scf.if" in printed
    assert "{tt.flatten, tt.num_stages = 3 : i32}" in printed
    assert len(loop.carried) == 1


def test_layouts(function: Function) -> None:
    builder = function.builder
    tensor = builder.type(TensorType((16, 32), "f32", BLOCKED))
    other = Blocked(
        size_per_thread=(4, 1), threads_per_warp=(4, 8), warps_per_cta=(1, 4), order=(0, 1)
    )
    zero = builder.constant(0, str(TensorType((16, 32), "i32", BLOCKED)))
    as_float = builder.create("arith.sitofp", [zero], [tensor]).results[0]
    converted = builder.convert_layout(as_float, builder.type(TensorType((16, 32), "f32", other)))
    buffer = builder.local_alloc(builder.type(MemDescType((16, 32), "f32", SHARED)), converted)
    builder.local_load(buffer, tensor)
    printed = function.printed()
    assert "ttg.convert_layout" in printed
    assert "ttg.local_alloc" in printed
    assert "ttg.local_load" in printed


def test_dot_wait_returns_what_it_is_given(function: Function) -> None:
    builder = function.builder
    tensor = builder.constant(0, str(TensorType((16, 32), "i32", BLOCKED)))
    (waited,) = builder.dot_wait([tensor], 1)
    assert waited.type == tensor.type
    assert "ttng.warp_group_dot_wait %cst {pendings = 1 : i32}" in function.printed()


def test_attributes_are_set_and_removed(function: Function) -> None:
    set_attribute(function.operation, "tt.flag")
    set_attribute(function.operation, "tt.number", "3 : i32")
    remove_attribute(function.operation, "tt.flag")
    assert remove_attribute(function.operation, "tt.absent") == function.operation
    printed = function.printed()
    assert "tt.number = 3 : i32" in printed
    assert "tt.flag" not in printed


def test_a_property_is_removed_from_an_unknown_operation(function: Function) -> None:
    function.builder.program_id()
    successor = remove_attribute(function.operation, "sym_visibility")
    assert "sym_visibility" not in successor.attributes
    printed = function.printed()
    assert "tt.func @f(%arg0: i32)" in printed
    assert "tt.get_program_id" in printed


def test_erasing_what_is_used_raises(function: Function) -> None:
    builder = function.builder
    used = builder.program_id()
    builder.integer("addi", used, used)
    owner = used.owner
    assert not isinstance(owner, engine.ir.Block)
    with guarded(), pytest.raises(ValueError, match=r"'tt.get_program_id'.*'arith.addi'"):
        owner.operation.erase()
    assert "arith.addi" in function.printed()


def test_deleting_a_property_raises(function: Function) -> None:
    attributes = function.operation.attributes
    with guarded(), pytest.raises(ValueError, match="remove_attribute"):
        del attributes["sym_visibility"]
    assert "public" in function.printed()


def test_guards_are_taken_off() -> None:
    base = engine.ir.Operation.__mro__[1]
    stock = (base.__dict__["erase"], engine.ir.OpAttributeMap.__delitem__)
    with guarded(), guarded():
        assert base.__dict__["erase"] is not stock[0]
    assert (base.__dict__["erase"], engine.ir.OpAttributeMap.__delitem__) == stock
