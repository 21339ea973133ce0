"""Schedules drawn at random."""

from __future__ import annotations

import random
from dataclasses import dataclass

from tilepass.sim.protocol.events import Recording
from tilepass.sim.protocol.findings import ProtocolFault
from tilepass.sim.protocol.machine import Machine

# How readily copies complete while partitions can go on: at once, late, or as late as possible.
_EAGERNESS = (1.0, 0.3, 0.05, 0.0)


@dataclass(frozen=True)
class Execution:
    """One execution: the machine as it ended or stopped, and what is wrong."""

    machine: Machine
    fault: ProtocolFault | None = None


def run_random(recording: Recording, seed: int) -> Execution:
    """One execution in an order drawn with `seed`."""
    choose = random.Random(seed)
    eagerness = choose.choice(_EAGERNESS)
    machine = Machine(recording)
    try:
        machine.start()
        while not machine.done:
            if not _step(machine, choose, eagerness):
                break
        while machine.landings:
            machine.land(choose.choice(machine.landings))
        machine.conclude()
    except ProtocolFault as fault:
        return Execution(machine, fault)
    return Execution(machine)


def _step(machine: Machine, choose: random.Random, eagerness: float) -> bool:
    ready, landings = machine.ready(), machine.landings
    if not ready and not landings:
        return False
    if landings and (not ready or choose.random() < eagerness / 2):
        machine.land(choose.choice(landings))
    else:
        machine.advance(choose.choice(ready))
    return True
