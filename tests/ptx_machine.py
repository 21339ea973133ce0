"""Runs a CuTe kernel's PTX on the CPU: every thread of a CTA at once, by numpy.

    memory = GlobalMemory(); x = memory.place(array)
    run_grid(ptx, memory, [struct.pack("<q", x), ...], grid=(2, 1))
    memory.read_back()

For the part of the PTX ISA that warp-level matrix kernels of CuTe DSL use; another instruction
raises NotImplementedError. Bit by bit as a GPU, but for the rounding inside mma.sync and of the
`approx` functions. A race in shared memory, a wrong address or a deadlock is a `KernelFault`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from ptx_arithmetic import evaluate, width_of
from ptx_matrix import matrix_elements, matrix_rows, multiply
from ptx_memory import Addresses, GlobalMemory, KernelFault, SharedMemory, Threads
from ptx_text import Instruction, Kernel, address, constant, parse_kernel

Registers = dict[str, NDArray[Any]]
SHARED_BYTES = 232448
"""Shared memory that a CTA may have on sm_90 (CUDA programming guide, compute capabilities)."""


def run_grid(
    ptx: str, memory: GlobalMemory, parameters: Sequence[bytes], grid: tuple[int, ...]
) -> None:
    """Run all CTAs, one after the other. Raises KernelFault."""
    kernel = parse_kernel(ptx)
    padded = (*grid, 1, 1)[:3]
    for z in range(padded[2]):
        for y in range(padded[1]):
            for x in range(padded[0]):
                _Cta(kernel, memory, parameters, (x, y, z), padded).run()


class _Cta:
    def __init__(
        self,
        kernel: Kernel,
        memory: GlobalMemory,
        parameters: Sequence[bytes],
        index: tuple[int, ...],
        grid: tuple[int, ...],
    ) -> None:
        self.kernel = kernel
        self.memory = memory
        self.shared = SharedMemory(SHARED_BYTES, kernel.threads)
        self.parameters = parameters
        self.registers: Registers = {}
        everyone = np.arange(kernel.threads)
        for axis, number, count in zip("xyz", index, grid, strict=True):
            self.registers[f"%ctaid.{axis}"] = np.full(kernel.threads, number, np.uint32)
            self.registers[f"%nctaid.{axis}"] = np.full(kernel.threads, count, np.uint32)
            self.registers[f"%tid.{axis}"] = np.zeros(kernel.threads, np.uint32)
        self.registers["%tid.x"] = everyone.astype(np.uint32)
        self.place = np.zeros(kernel.threads, np.int64)
        """The next instruction of each thread."""
        self.waiting = np.full(kernel.threads, -1)
        """The barrier at which a thread waits, or -1."""
        self.running = np.ones(kernel.threads, np.bool_)
        self.copies: list[tuple[NDArray[np.int64], Threads, Addresses, NDArray[np.uint8]]] = []
        self.group = np.zeros(kernel.threads, np.int64)
        """How many groups of asynchronous copies a thread has committed."""

    def run(self) -> None:
        starts = set(self.kernel.labels.values())
        while self.running.any():
            ready = self.running & (self.waiting < 0)
            if not ready.any():
                barriers = np.unique(self.waiting[self.running])
                raise KernelFault(f"deadlock: threads wait at barriers {barriers}")
            # Those that are furthest behind go first, so that threads meet again after a branch.
            here = int(self.place[ready].min())
            threads = np.flatnonzero(ready & (self.place == here))
            while self._step_or_name(here, threads):
                here += 1
                if here in starts:
                    break

    def _step_or_name(self, here: int, threads: Threads) -> bool:
        try:
            return self._step(here, threads)
        except KernelFault as fault:
            text = self.kernel.instructions[here].text
            raise KernelFault(f"{fault}\n  instruction {here}: {text}") from fault

    def _step(self, here: int, threads: Threads) -> bool:
        """Execute one instruction; whether the same threads go on with the next one."""
        instruction = self.kernel.instructions[here]
        self.place[threads] = here + 1
        if instruction.guard is not None:
            taken = self.registers[instruction.guard][threads] != instruction.negated
            acting = threads[taken]
        else:
            acting = threads
        match instruction.code[0]:
            case "bra":
                self.place[acting] = self.kernel.labels[instruction.name(0)]
                return False
            case "ret" | "exit":
                self.running[acting] = False
                return False
            case "bar" if instruction.code[1] == "warp":
                for warp in self._warps(acting):
                    self.shared.barrier(warp)
            case "bar" | "barrier":
                self._arrive(instruction, acting)
                return False
            case _ if acting.size == 0:
                return True
            case "ld" | "st":
                self._access(instruction, acting)
            case "ldmatrix" | "stmatrix":
                self._matrix(instruction, acting)
            case "mma":
                self._multiply(instruction, acting)
            case "shfl":
                self._shuffle(instruction, acting)
            case "cp":
                self._copy(instruction, acting)
            case _:
                self._compute(instruction, acting)
        return True

    def _compute(self, instruction: Instruction, threads: Threads) -> None:
        """An instruction of registers alone; `mov` also joins two into one or parts one."""
        if instruction.code[0] == "mov" and isinstance(instruction.operands[1], tuple):
            low, high = (self._value(n, threads, 16) for n in instruction.names(1))
            joined = np.stack([low, high], -1).view(np.uint32)[:, 0]
            self._set(instruction.name(0), threads, joined)
        elif isinstance(instruction.operands[0], tuple):
            parts = self._value(instruction.name(1), threads, 32)[:, None].view(np.uint16)
            for index, name in enumerate(instruction.names(0)):
                self._set(name, threads, parts[:, index])
        else:
            count = range(1, len(instruction.operands))
            sources = [self._value(instruction.name(i), threads) for i in count]
            self._set(instruction.name(0), threads, evaluate(instruction, sources))

    def _arrive(self, instruction: Instruction, threads: Threads) -> None:
        numbers = [constant(instruction.name(i)) for i in range(len(instruction.operands))]
        barrier = numbers[0] or 0
        expected = numbers[1] if len(numbers) > 1 else self.kernel.threads
        self.waiting[threads] = barrier
        there = np.flatnonzero(self.waiting == barrier)
        if len(there) == expected:
            self.shared.barrier(there)
            self.waiting[there] = -1

    def _access(self, instruction: Instruction, threads: Threads) -> None:
        loads, space = instruction.code[0] == "ld", instruction.code[1]
        names = instruction.names(0 if loads else 1)
        size = width_of(instruction.code[-1]) // 8
        base, offset = address(instruction.name(1 if loads else 0))
        if space == "param":
            number = int(base.rsplit("_", 1)[1])
            data = np.frombuffer(self.parameters[number], np.uint8)[offset:][: size * len(names)]
            data = np.repeat(data[None], len(threads), axis=0)
        else:
            at = self._addresses(base, offset, threads)
            memory = self.shared if space == "shared" else self.memory
            if not loads:
                values = [self._value(name, threads, size * 8) for name in names]
                memory.store(threads, at, np.ascontiguousarray(np.stack(values, 1)).view(np.uint8))
                return
            data = memory.load(threads, at, size * len(names))
        kind: Any = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}[size]
        for index, name in enumerate(names):
            part = np.ascontiguousarray(data[:, index * size : (index + 1) * size])
            self._set(name, threads, part.view(kind)[:, 0])

    def _matrix(self, instruction: Instruction, threads: Threads) -> None:
        loads, transpose = instruction.code[0] == "ldmatrix", "trans" in instruction.code
        names = instruction.names(0 if loads else 1)
        base, offset = address(instruction.name(1 if loads else 0))
        lanes = self._warps(threads)
        at = self._addresses(base, offset, threads).reshape(lanes.shape)
        for index, name in enumerate(names):
            rows = slice(8 * index, 8 * index + 8)
            owners, places = lanes[:, rows].reshape(-1), at[:, rows].reshape(-1)
            if loads:
                data = self.shared.load(owners, places, 16).view(np.uint16).reshape(-1, 8, 8)
                self._set(name, threads, matrix_elements(data, transpose).reshape(-1))
            else:
                registers = self._value(name, threads, 32).reshape(lanes.shape)
                data = np.ascontiguousarray(matrix_rows(registers, transpose)).reshape(-1, 8)
                self.shared.store(owners, places, data.view(np.uint8))

    def _multiply(self, instruction: Instruction, threads: Threads) -> None:
        shape = self._warps(threads).shape
        if instruction.code[3:6] != ("m16n8k16", "row", "col") or instruction.code[6] != "f32":
            raise NotImplementedError(instruction.text)
        a, b, c = (
            np.stack([self._value(n, threads, 32) for n in instruction.names(i)], -1)
            for i in (1, 2, 3)
        )
        start = np.ascontiguousarray(c).view(np.float32).reshape(*shape, -1)
        kind = instruction.code[7]
        total = multiply(a.reshape(*shape, -1), b.reshape(*shape, -1), start, kind)
        for index, name in enumerate(instruction.names(0)):
            part = np.ascontiguousarray(total[..., index]).reshape(-1)
            self._set(name, threads, part.view(np.uint32))

    def _shuffle(self, instruction: Instruction, threads: Threads) -> None:
        shape = self._warps(threads).shape
        value = self._value(instruction.name(1), threads, 32).reshape(shape)
        offset = self._value(instruction.name(2), threads, 32).astype(np.int64).reshape(shape)
        clamp = constant(instruction.name(3))
        lane = np.arange(32)[None]
        match instruction.code[2], clamp:
            case "idx", 31:
                source = np.broadcast_to(offset % 32, shape)
            case "up", 0:
                source = np.where(lane >= offset, lane - offset, lane)
            case "bfly", 31:
                source = lane ^ offset
            case _:
                raise NotImplementedError(instruction.text)
        self._set(instruction.name(0), threads, np.take_along_axis(value, source, 1).reshape(-1))

    def _copy(self, instruction: Instruction, threads: Threads) -> None:
        """cp.async: the place is poisoned when the copy starts and filled when it is waited for."""
        match instruction.code[2]:
            case "commit_group":
                self.group[threads] += 1
            case "wait_group":
                self._finish_copies(threads, constant(instruction.name(0)) or 0)
            case _:
                if instruction.operands[2:] not in (("16", "16"), ("16",)):
                    raise NotImplementedError(instruction.text)
                to = self._addresses(*address(instruction.name(0)), threads)
                source = self._addresses(*address(instruction.name(1)), threads)
                data = self.memory.load(threads, source, 16)
                self.shared.store(threads, to, np.full_like(data, 0xFF))
                self.copies.append((self.group[threads].copy(), threads, to, data))

    def _finish_copies(self, threads: Threads, left: int) -> None:
        kept: list[tuple[NDArray[np.int64], Threads, Addresses, NDArray[np.uint8]]] = []
        for group, owners, to, data in self.copies:
            done = np.isin(owners, threads) & (group < self.group[owners] - left)
            self.shared.overwrite(to[done], data[done])
            if not done.all():
                kept.append((group[~done], owners[~done], to[~done], data[~done]))
        self.copies = kept

    def _addresses(self, base: str, offset: int, threads: Threads) -> Addresses:
        return self._value(base, threads).astype(np.int64) + offset

    def _warps(self, threads: Threads) -> NDArray[np.int64]:
        """The threads as [warps, 32]; a warp acts as a whole or not at all."""
        if len(threads) % 32 or np.any(threads.reshape(-1, 32) // 32 != threads[::32, None] // 32):
            raise KernelFault("a warp-wide instruction is reached by a part of a warp")
        return threads.reshape(-1, 32)

    def _value(self, name: str, threads: Threads, bits: int | None = None) -> NDArray[Any]:
        number = constant(name)
        if name.startswith("__dynamic_shmem"):
            number, bits = 0, 32
        if number is None:
            return self.registers[name][threads]
        kind: Any = {16: np.uint16, 64: np.uint64, None: np.uint64, 32: np.uint32}[bits]
        return np.full(len(threads), number & (2 ** (bits or 64) - 1), kind)

    def _set(self, name: str, threads: Threads, values: NDArray[Any]) -> None:
        if name == "_":
            return
        if name not in self.registers:
            if values.dtype.kind not in "bu":
                raise TypeError(f"{name}: registers hold bits, not {values.dtype}")
            self.registers[name] = np.zeros(self.kernel.threads, values.dtype)
        self.registers[name][threads] = values
