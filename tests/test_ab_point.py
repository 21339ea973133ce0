"""Checking and timing a point, with a GPU and a clock that are only pretended."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from benchmarks.simulated_device import Noise, SimulatedDevice
from tilepass.ab.clocks import ClockMonitor
from tilepass.ab.cuda_device import Graph, GraphTimer, copies_for, launches_for
from tilepass.ab.events import ArmReady, Done, Event, KernelFact, Sampled, Setup
from tilepass.ab.job import Arm, Job, Point
from tilepass.ab.point import PointRunner
from tilepass.ab.protocol import Device, Orders, Plan, random_orders
from tilepass.ab.report import Report
from tilepass.ab.subjects import Subject, find_subject
from tilepass.core.errors import TilepassError

if TYPE_CHECKING:
    from tilepass.ab.cuda_device import Launcher

MODULE = """
import torch

calls = 0


def make_inputs(shape, seed, device="cuda"):
    generator = torch.Generator(device).manual_seed(seed)
    return {"x": torch.rand(shape, generator=generator), "out": torch.empty(shape)}


def reference(inputs):
    return 2 * inputs["x"]


def double(inputs, how="right"):
    global calls
    calls += 1
    out = inputs["out"]
    if how == "half":
        out[: len(out) // 2] = 2 * inputs["x"][: len(out) // 2]
    elif how == "racy" and calls > 20:
        out.copy_(3 * inputs["x"])
    elif how == "rounded":
        out.copy_(2 * inputs["x"] + 1e-7)
    else:
        out.copy_(inputs["x"] + inputs["x"])
    return out


def flops(shape):
    return 64.0
"""


class FakeGpu:
    """Runs launches on the CPU; every kernel takes `microseconds`, slot 1 `slower` times that."""

    kind = "cpu"

    def __init__(self, microseconds: float = 150.0, slower: float = 1.05) -> None:
        self._microseconds = microseconds
        self._slower = slower
        self.captured: list[int] = []

    def synchronize(self) -> None:
        return None

    def capture(self, launchers: Sequence[Launcher]) -> Graph:
        self.captured.append(len(launchers))
        outputs = tuple(launcher() for launcher in launchers)

        def replay() -> None:
            for launcher, kept in zip(launchers, outputs, strict=True):
                for output, new in zip(kept, launcher(), strict=True):
                    output.copy_(new)

        return Graph(replay, outputs, tuple(launchers))

    def l2_bytes(self) -> int:
        return 1000

    def launch_us(self, graph: Graph) -> float:
        return self._microseconds

    def timer(self, graphs: Sequence[Graph]) -> Device:
        true = [self._microseconds] * len(graphs)
        true[1] *= self._slower
        return SimulatedDevice(true, Noise(launch=0.003), seed=0)


class FakeLog:
    """Names a kernel for each launch that is looked at, in order."""

    def __init__(self, kernels: Sequence[KernelFact]) -> None:
        self._kernels: Iterator[KernelFact] = iter(kernels)

    @contextmanager
    def launches(self) -> Generator[dict[str, KernelFact]]:
        kernel = next(self._kernels)
        yield {kernel.code_hash: kernel}


def kernel(code: str, name: str = "double_kernel") -> KernelFact:
    return KernelFact(name, code, "")


Run = Callable[..., list[Event]]


@pytest.fixture
def subject(tmp_path: Path) -> Subject:
    path = tmp_path / "doubling.py"
    path.write_text(MODULE)
    return find_subject(f"{path}:double")


@pytest.fixture
def run(subject: Subject) -> Run:
    def run(
        *hows: str,
        kernels: Sequence[KernelFact] = (kernel("a"), kernel("b"), kernel("a")),
        gpu: FakeGpu | None = None,
        force: bool = False,
        equal_bits: bool = False,
    ) -> list[Event]:
        labels = ("A", "B", "C")
        arms = [Arm(x, "", {"how": how}) for x, how in zip(labels, hows, strict=False)]
        plan = Plan(warm_up_seconds=0.0)
        job = Job("double", tuple(arms), (Point((64,)),), plan, (), force, equal_bits)
        events: list[Event] = []
        runner = PointRunner(job, subject, FakeLog(kernels), gpu or FakeGpu(), events.append)
        runner.run(0, range(len(arms)))
        return events

    return run


def kinds(events: Sequence[Event]) -> list[str]:
    names = [type(event).__name__ for event in events]
    return [name for index, name in enumerate(names) if names[index - 1 : index] != [name]]


def test_a_point_is_checked_and_then_timed(run: Run) -> None:
    events = run("right", "rounded")
    steps = ["Started", "ArmReady", "Started", "Setup", "Started", "Sampled", "Done"]
    assert kinds(events) == steps
    assert events[-1] == Done(0, "timed")
    ready = [event for event in events if isinstance(event, ArmReady)]
    assert [event.equal_bits for event in ready] == [True, False]


def test_the_report_of_a_point(run: Run) -> None:
    events = run("right", "rounded")
    arms = (Arm("A", "", {"how": "right"}), Arm("B", "", {"how": "rounded"}))
    report = Report(Job("double", arms, (Point((64,)),)))
    for event in events:
        report.add(event)
    found = report.compare(0, 1)
    assert found is not None
    assert found[0].ratio == pytest.approx(1.05, abs=0.002)
    assert str(found[1]) == "SLOWER"
    assert report.points[0].status == "timed"
    assert not report.partial
    assert report.to_dict()["points"][0]["flops"] == 64.0


def test_short_launches_rotate_over_copies(run: Run) -> None:
    gpu = FakeGpu(microseconds=40.0)
    events = run("right", "rounded", gpu=gpu)
    setup = next(event for event in events if isinstance(event, Setup))
    assert (setup.launches, setup.copies) == (10, 10)  # the module does not say bytes_moved
    assert gpu.captured == [1, 1, 1, 10, 10, 10]


def test_unwritten_outputs_are_found_before_anything_is_timed(run: Run) -> None:
    with pytest.raises(TilepassError, match=r"arm B .*how=half.* is wrong: .*32 of 64.*32 NaN"):
        run("right", "half")


def test_outputs_that_change_while_timed_are_a_race(run: Run) -> None:
    # Few calls come before the timing: captures, replays, and the rotating graphs' launches.
    with pytest.raises(TilepassError, match="is a race"):
        run("right", "racy", gpu=FakeGpu(microseconds=10.0))


def test_equal_binaries_with_equal_settings_are_not_timed(run: Run) -> None:
    events = run("right", "right", kernels=[kernel("a"), kernel("a")])
    assert events[-1] == Done(0, "identical")
    assert not any(isinstance(event, Sampled) for event in events)


def test_equal_binaries_are_timed_when_forced(run: Run) -> None:
    events = run("right", "right", kernels=[kernel("a")] * 3, force=True)
    assert events[-1] == Done(0, "timed")


def test_only_distinct_arms_take_a_slot(run: Run) -> None:
    kernels = [kernel("a"), kernel("b"), kernel("a"), kernel("a")]
    events = run("right", "rounded", "right", kernels=kernels)
    sample = next(event for event in events if isinstance(event, Sampled))
    assert len(sample.times[0]) == 3  # A, B, and the duplicate of A


def test_kernel_names_must_not_differ(run: Run) -> None:
    kernels = [kernel("a"), kernel("b", "double_flat"), kernel("a")]
    with pytest.raises(TilepassError, match="different names: double_kernel against double_flat"):
        run("right", "rounded", kernels=kernels)
    assert run("right", "rounded", kernels=kernels, force=True)[-1] == Done(0, "timed")


def test_bits_can_be_required(run: Run) -> None:
    with pytest.raises(TilepassError, match="arm B: outputs differ from arm A's bit by bit"):
        run("right", "rounded", equal_bits=True)


class FakeStream:
    """A GPU time line in milliseconds, and what was queued on it."""

    def __init__(self) -> None:
        self.now_ms = 0.0
        self.queued: list[str] = []

    def advance(self, what: str, ms: float) -> None:
        self.queued.append(what)
        self.now_ms += ms


class FakeEvent:
    def __init__(self, stream: FakeStream) -> None:
        self._stream = stream
        self.at_ms = 0.0

    def record(self) -> None:
        self._stream.queued.append("event")
        self.at_ms = self._stream.now_ms

    def synchronize(self) -> None:
        self._stream.queued.append("wait")

    def elapsed_time(self, end_event: FakeEvent, /) -> float:
        return end_event.at_ms - self.at_ms


class SteadyClock:
    def read_mhz(self) -> float:
        return 1500.0


def fake_timer(stream: FakeStream, monitor: ClockMonitor | None = None) -> GraphTimer:
    def graph(slot: int) -> Graph:
        return Graph(lambda: stream.advance(f"slot {slot}", 0.1 * (slot + 1)), ((), ()), ())

    return GraphTimer(
        [graph(slot) for slot in range(3)],
        monitor,
        flush=lambda: stream.advance("flush", 5.0),
        new_event=lambda: FakeEvent(stream),
        now=lambda: stream.now_ms * 1e-3,
    )


def test_the_flush_is_outside_the_span_and_nothing_waits_inside_a_batch() -> None:
    stream = FakeStream()
    orders: Orders = random_orders(np.random.default_rng(0), 20, 3)
    batch = fake_timer(stream).time_rounds(orders)
    # 2 launches a span: 0.1, 0.2, 0.3 ms are 50, 100, 150 us a launch, whatever the order.
    np.testing.assert_allclose(batch.times, np.tile([50.0, 100.0, 150.0], (20, 1)))
    assert stream.queued[-1] == "wait"
    assert stream.queued.count("wait") == 1
    expected: list[str] = []
    for slot in orders.reshape(-1):
        expected += ["flush", "event", f"slot {slot}", "event"]
    assert stream.queued[:-1] == expected


def test_each_span_gets_the_clock_of_its_own_time() -> None:
    stream = FakeStream()
    monitor = ClockMonitor(SteadyClock())
    readings = {0.005: 1500.0, 0.016: 900.0}
    monitor._times, monitor._readings = list(readings), list(readings.values())  # pyright: ignore[reportPrivateUsage]
    batch = fake_timer(stream, monitor).time_rounds(np.array([[0, 1, 2], [2, 1, 0]]))
    # Middles at 5.05, 10.2, 15.45 ms, then 20.75 ms and later.
    assert batch.clocks is not None
    assert batch.clocks.tolist() == [[1500.0, 1500.0, 900.0], [900.0, 900.0, 900.0]]


def test_slots_of_different_lengths_are_refused() -> None:
    graphs = [Graph(lambda: None, ((),), ()), Graph(lambda: None, ((), ()), ())]
    with pytest.raises(ValueError, match="different numbers of times"):
        GraphTimer(graphs, None, lambda: None, lambda: FakeEvent(FakeStream()))


def test_short_kernels_share_a_span_over_cold_copies() -> None:
    assert launches_for(2000.0) == 1
    assert launches_for(20.0) == 20
    assert launches_for(0.001) == 64
    assert copies_for(20, touched_bytes=9e6, l2=60_000_000) == 15
    assert copies_for(4, touched_bytes=9e6, l2=60_000_000) == 4
    assert copies_for(20, touched_bytes=1e9, l2=60_000_000) == 2
    assert copies_for(20, touched_bytes=0.0, l2=60_000_000) == 20
