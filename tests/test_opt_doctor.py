"""`tilepass doctor` finds what is wrong, not only what is right."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tilepass.cli import doctor
from tilepass.doctor import machine, self_test
from tilepass.doctor.machine import Finding, run_check
from tilepass.frontends.triton import bridge
from tilepass.ir import engine


def test_all_is_well_here(capsys: pytest.CaptureFixture[str]) -> None:
    assert doctor.main([]) == 0
    assert "FAIL" not in capsys.readouterr().out


@pytest.mark.parametrize("found", ["3.5.1", "3.10.0", "2.0", "nonsense"])
def test_unsupported_triton(found: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "version", _says(found))
    (finding,) = machine.check_triton()
    assert finding.status == "FAIL"
    assert found in finding.found


def test_old_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "version", _says("0.9.0"))
    statuses = {finding.subject: finding.status for finding in machine.check_packages()}
    assert statuses["nvidia-cutlass-dsl"] == "FAIL"
    assert statuses["torch"] == "note"


def test_inexact_round_trip_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    exact = bridge.from_engine

    def inexact(module: engine.Module, context: Any) -> _Printed:
        return _Printed(exact(module, context).str().replace("12:4", "12:5"))

    monkeypatch.setattr(bridge, "from_engine", inexact)
    (finding,) = self_test.check_round_trip()
    assert finding.status == "FAIL"
    assert finding.found.startswith("6 of 7 ")
    assert "locations: '" in finding.advice
    assert "12:5" in finding.advice


def test_check_that_cannot_be_made_fails() -> None:
    def check_the_moon() -> list[Finding]:
        raise OSError("too far")

    assert run_check(check_the_moon) == [Finding("the moon", "FAIL", "OSError: too far")]


def test_no_gpu_is_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "import_module", _no_module)
    (finding,) = machine.check_gpu()
    assert finding.status == "note"


class _Printed:
    """A module of which only the text matters."""

    def __init__(self, text: str) -> None:
        self._text = text

    def str(self) -> str:
        return self._text


def _says(text: str) -> Callable[[str], str]:
    def version(name: str) -> str:
        return text

    return version


def _no_module(name: str) -> None:
    raise ModuleNotFoundError(name)


def test_exit_status(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(self_test, "check_passes", lambda: [Finding("passes", "FAIL", "broken")])
    assert doctor.main([]) == 1
    assert "FAIL  passes" in capsys.readouterr().out
