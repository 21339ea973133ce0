"""Values of CuTe modules: plain ones while passes run, the DSL's own before and after."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from cute_copy_kernel import CopyByElements
from cute_support import MMAS, PASSES, compiled_mmas

from tilepass.activate import enabled
from tilepass.core.errors import PassFailure
from tilepass.ir import engine
from tilepass.ir.values import plain_values

pytestmark = pytest.mark.traces

MODULE = """func.func @f(%a: f32, %b: !cute.ptr<f32, gmem>) {
  %sum = arith.addf %a, %a : f32
  return
}"""
BOTH_WAYS = """
import {first}
from tilepass.ir import engine
from tilepass.ir.values import plain_values
import cutlass.cute
module = engine.parse_expanded('''{module}''')
(add,) = (each for each in engine.operations(module) if each.name == "arith.addf")
print(type(add.operands[0]).__name__)
with plain_values():
    print(type(add.operands[0]).__name__, type(add.result).__name__)
print(type(add.operands[0]).__name__, type(add.result).__name__)
"""


def kind_of_operand(module: engine.Module) -> str:
    """The name of the class of which an operand is."""
    (add,) = (each for each in engine.operations(module) if each.name == "arith.addf")
    return type(add.operands[0]).__name__


def test_a_pass_that_reads_every_value_leaves_nothing_behind(tmp_path: Path) -> None:
    kernel = CopyByElements((32, 24), True, 8)
    folders = [tmp_path / name for name in ("stock", "read")]
    for folder in folders:
        folder.mkdir()
    stock = kernel.compile_to_ptx(folders[0])
    with enabled("read-everything", load=[PASSES], remarks="none") as session:
        assert kernel.compile_to_ptx(folders[1]) == stock
    (remark,) = session.remarks
    assert remark.message.endswith("loops: 2")


def test_tracing_goes_on_with_the_values_of_the_dsl_after_a_failure() -> None:
    with (
        enabled("break-module{raises=true}", load=[PASSES]),
        pytest.raises(PassFailure, match="as asked"),
    ):
        compiled_mmas()
    assert kind_of_operand(engine.parse_expanded(MODULE)) == "ArithValue"
    assert compiled_mmas() == MMAS


def test_blocks_nest_and_end_with_exceptions() -> None:
    module = engine.parse_expanded(MODULE)
    with plain_values():
        with pytest.raises(KeyError), plain_values():
            raise KeyError
        assert kind_of_operand(module) == "BlockArgument"
    assert kind_of_operand(module) == "ArithValue"


def test_a_thread_that_traces_meanwhile_has_the_values_of_the_dsl() -> None:
    module, kinds = engine.parse_expanded(MODULE), list[str]()

    def look() -> None:
        kinds.append(kind_of_operand(module))

    with plain_values():
        thread = Thread(target=look)
        thread.start()
        thread.join()
        look()
    assert kinds == ["ArithValue", "BlockArgument"]


@pytest.mark.parametrize("first", ["cutlass.cute", "tilepass.ir.values"])
def test_either_may_be_imported_first(first: str) -> None:
    program = BOTH_WAYS.format(first=first, module=MODULE)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.split("\n")[:-1] == [
        "ArithValue",
        "BlockArgument OpResult",
        "ArithValue ArithValue",
    ], done.stderr


def test_a_caster_registered_meanwhile_is_put_aside_too() -> None:
    index: Any = engine.ir.IndexType
    text = MODULE.replace("f32", "index").replace("addf", "addi")
    module = engine.parse_expanded(text.replace("!cute.ptr<index, gmem>", "index"))
    (add,) = (each for each in engine.operations(module) if each.name == "arith.addi")
    bindings: Any = engine.ir
    register = bindings.register_value_caster(index.static_typeid, replace=True)
    with plain_values():
        register(str)
        assert isinstance(add.operands[0], engine.ir.BlockArgument)
    assert isinstance(add.operands[0], str)
    register(engine.ir.Value)
