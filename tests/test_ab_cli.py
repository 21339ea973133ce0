"""`tilepass ab` as a command, and what its reports look like."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from rich.console import Console

from benchmarks.simulated_device import Noise, SimulatedDevice
from tilepass.ab import session
from tilepass.ab.events import ArmReady, Done, Found, KernelFact, Setup, Started, sampled
from tilepass.ab.job import Arm, Job, Point
from tilepass.ab.plot import plot_report
from tilepass.ab.protocol import measure
from tilepass.ab.report import Report
from tilepass.ab.table import markdown_table, print_report
from tilepass.cli.ab import main
from tilepass.cli.guard import run_guarded
from tilepass.core.errors import TilepassError
from tilepass.core.files import write_json


@pytest.fixture
def no_gpu(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(session, "gpu_count", lambda: 0)
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "cache"))


def simulated_report(ratios: tuple[float, ...] = (1.03,), done: bool = True) -> Report:
    """A report as a GPU run gives it; the last point is unfinished unless `done`."""
    points = tuple(Point((64 * (index + 1), 64, 64)) for index in range(len(ratios)))
    job = Job("matmul", (Arm("A"), Arm("B", "flatten-loops{mode=on}")), points)
    report = Report(job)
    report.add(Found({"GPU": "NVIDIA H200", "driver": "580.1", "triton": "3.6.0"}))
    for index, ratio in enumerate(ratios):
        report.add(Started(index, "check"))
        for arm in range(2):
            kernel = KernelFact("matmul", f"code{arm}", "")
            report.add(ArmReady(index, arm, (kernel,), "Config()", equal_bits=True))
        report.add(Setup(index, 4, 3, 2e9, 1e6))
        device = SimulatedDevice([100.0, 100.0 * ratio, 100.0], Noise(launch=0.005), index)
        for batch in measure(device, 2, job.plan, device.elapsed):
            report.add(sampled(index, batch))
        if done or index < len(ratios) - 1:
            report.add(Done(index, "timed"))
    return report


def printed(report: Report, capsys: pytest.CaptureFixture[str]) -> str:
    print_report(report, Console(width=200))
    return capsys.readouterr().out


def test_table(capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(simulated_report((1.03, 0.96)), capsys)
    assert "NVIDIA H200, driver 580.1, triton 3.6.0" in text
    assert "arm B: flatten-loops{mode=on}" in text
    assert "SLOWER" in text
    assert "FASTER" in text
    assert "A' / A" in text
    assert "PARTIAL" not in text


def test_partial_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    report = simulated_report((1.03, 1.03), done=False)
    report.interrupt("Ctrl-C")
    assert "PARTIAL: ended by Ctrl-C" in printed(report, capsys)


def test_json(tmp_path: Path) -> None:
    report = simulated_report()
    path = tmp_path / "new" / "report.json"
    write_json(path, report.to_dict())
    data = json.loads(path.read_text())
    assert data["schema"] == "tilepass-ab/1"
    assert data["status"] == "complete"
    assert data["environment"]["GPU"] == "NVIDIA H200"
    assert data["plan"]["seed"] == 0
    point = data["points"][0]
    assert point["shape"] == [64, 64, 64]
    assert point["duplicate"]["verdict"] == "SAME"
    assert point["clocks_mhz"]["reference"] == pytest.approx(1980)
    other = point["arms"][1]["against_baseline"]
    assert other["verdict"] == "SLOWER"
    assert other["low"] < other["ratio"] < other["high"]
    assert "times_us" not in point
    raw = report.to_dict(raw=True)["points"][0]["times_us"]
    assert len(raw) == other["rounds"]
    assert [path.name for path in path.parent.iterdir()] == ["report.json"]


def test_json_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(TilepassError, match="cannot write"):
        write_json(tmp_path / "file" / "report.json", {})


@pytest.mark.parametrize("suffix", [".png", ".svg"])
def test_plot(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"plot{suffix}"
    plot_report(simulated_report((1.03, 0.97)), path)
    assert path.stat().st_size > 5000


def test_plot_of_an_unknown_format_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(TilepassError, match=r"--plot .*plot\.xyz"):
        plot_report(simulated_report(), tmp_path / "plot.xyz")


def test_markdown() -> None:
    assert markdown_table(["a", "b"], [["1", "2"]]) == "| a | b |\n| --- | --- |\n| 1 | 2 |"


@pytest.mark.usefixtures("no_gpu")
def test_without_a_gpu_binaries_are_compared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "report.json"
    options = ["--config-a", "FLATTEN=0", "--config-b", "FLATTEN=1", "--shape", "512x512x512"]
    assert run_guarded(main, ["persistent-matmul", *options, "--json", str(path)]) == 0
    text = capsys.readouterr().out
    assert "no GPU: compiled only, nothing was run or timed" in text
    assert "registers" in text
    data = json.loads(path.read_text())
    assert data["points"][0]["status"] == "compiled"
    assert len(data["figures"]) == 2


@pytest.mark.usefixtures("no_gpu")
def test_a_library_is_an_arm_without_a_binary(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "report.json"
    options = ["--shape", "512x512x512", "--b", "flatten-loops{mode=off}", "--json", str(path)]
    library = "tilepass.ab.torch_matmul:mm"
    assert run_guarded(main, ["persistent-matmul", *options, "--library", library]) == 0
    assert f"arm C: {library}" in capsys.readouterr().out
    (point,) = json.loads(path.read_text())["points"]
    assert [len(arm["kernels"]) for arm in point["arms"]] == [1, 1, 0]
    assert run_guarded(main, ["persistent-matmul", *options, "--library", f"{library}s"]) == 1
    assert "has no function 'mms'" in capsys.readouterr().err


@pytest.mark.usefixtures("no_gpu")
def test_a_pass_that_could_not_act_says_why_the_binaries_are_identical(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "report.json"
    options = ["--b", "flatten-loops", "--shape", "512x512x512", "--json", str(path)]
    for _ in range(2):  # the second time the kernel is in Triton's disk cache
        assert run_guarded(main, ["matmul", *options]) == 0
        text = capsys.readouterr().out
        assert "IDENTICAL: all arms are the same binary" in text
        assert "arm B: " in text
        assert "[flatten-loops] missed: " in text
    (remark,) = json.loads(path.read_text())["points"][0]["arms"][1]["remarks"]
    assert not remark.startswith("/")  # reports are committed: no machine's folders in them


@pytest.mark.usefixtures("no_gpu")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["persistent-matmul", "--require-gpu"], "no GPU: NVML finds none"),
        (["persistant-matmul"], "did you mean"),
        (["persistent-matmul", "--b", "flaten-loops"], "flaten-loops"),
        (["persistent-matmul", "--a", "cse"], "'cse' is a pass of Triton"),
        (["persistent-matmul", "--b", "test-round-trip{"], "pipeline: expected"),
        (["persistent-matmul", "--config", "flaten=1"], "no option 'flaten'"),
        (["persistent-matmul", "--config", "flatten"], "--config: 'flatten'"),
        (["persistent-matmul", "--shape", "512x512"], "shape 512x512 is not MxNxK"),
        (["persistent-matmul", "--shape", "a"], "--shape: 'a'"),
        (["persistent-matmul", "--threshold", "0"], "threshold"),
        (["persistent-matmul", "--seconds", "0"], "time to sample"),
        (["persistent-matmul", "--plot", "a.foo"], "--plot a.foo: expected a file named .png"),
        (["persistent-matmul", "--load", "missing.py"], "missing.py"),
    ],
)
def test_bad_input_gets_a_message(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_guarded(main, arguments) == 1
    error = capsys.readouterr().err
    assert error.startswith("error: ")
    assert message in error
    assert "Traceback" not in error
