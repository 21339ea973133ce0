"""The Python modules of Triton's dialects that the bindings ask for at each operation."""

from __future__ import annotations

import sys
from importlib import import_module

import pytest

from tilepass.ir.engine import ir


def module_name(dialect: str) -> str:
    return f"{ir.__name__.rpartition('.')[0]}.dialects.{dialect}"


@pytest.mark.parametrize("dialect", ["tt", "ttg", "ttng", "amdg"])
def test_the_answer_is_an_empty_module(dialect: str) -> None:
    found = import_module(module_name(dialect))
    assert found is sys.modules[module_name(dialect)]
    assert not [name for name in vars(found) if not name.startswith("__")]


def test_others_are_searched_for() -> None:
    with pytest.raises(ModuleNotFoundError):
        import_module(module_name("nosuch"))
