"""Repeated launches of a workload compared bit by bit, for the tests on a GPU."""

from __future__ import annotations

import torch

from tilepass.kernels.workload import Launch


def launches_that_differ(launch: Launch, repetitions: int) -> list[int]:
    """Numbers of the launches whose outputs are not those that are there, everything poisoned
    before each launch. The GPU is waited for once, at the end."""
    first = [bits(output).clone() for output in launch.outputs]
    differ: list[torch.Tensor] = []
    for _ in range(repetitions):
        launch.poison()
        launch()
        pairs = zip(launch.outputs, first, strict=True)
        differ.append(torch.stack([(bits(now) != then).any() for now, then in pairs]).any())
    return [number for number, changed in enumerate(differ) if bool(changed)]


def bits(tensor: torch.Tensor) -> torch.Tensor:
    """The elements as integers: NaN equals itself, and zeros keep their sign."""
    return tensor.view({1: torch.int8, 2: torch.int16, 4: torch.int32}[tensor.element_size()])
