"""A concrete interpreter of lowered kernels: one block, all threads in step, real numbers.

An independent evaluation to test the analysis against: it shares the decoder (`program`) and the
record of an mma, and nothing of the abstract domains. A value is its bits, uint64 of shape
(threads, elements). Branches run one after the other under masks, so kernels whose threads wait for
each other inside branches are out of scope; what is not interpreted raises NotInterpreted.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from tests.fuzz_zero_structure import concrete_matrix, concrete_numbers
from tests.fuzz_zero_structure.concrete_memory import Memory
from tests.fuzz_zero_structure.concrete_numbers import Bits, NotInterpreted, as_signed
from tilepass.analysis.zero_structure.machine import Execution
from tilepass.analysis.zero_structure.program import DYNAMIC_INDEX, Block, Instruction, Program
from tilepass.analysis.zero_structure.types import Address, Fields, Scalar, Type, Vector, size_of

Values = Any
_QUIET = frozenset(("nvvm.barrier", "nvvm.barrier0", "nvvm.bar.warp.sync", "llvm.intr.assume"))
_ENDS = frozenset(("scf.yield", "scf.condition", "cuda.return", "gpu.return", "func.return"))


class Interpreter:
    """Runs a kernel for one block."""

    def __init__(
        self, program: Program, threads: int, arguments: list[Any], random: np.random.Generator
    ) -> None:
        self.program = program
        self.threads = threads
        self.memory = Memory(program, threads, random)
        self.runs: dict[int, list[Execution]] = {}
        self._arguments = arguments
        self._env: dict[int, Values] = {}

    def run(self) -> None:
        """Execute the kernel. Raises NotInterpreted."""
        body = self.program.body
        waiting = list(self._arguments)
        for number, kind in zip(body.arguments, body.types, strict=True):
            self._env[number] = self._argument(kind, waiting)
        self._block(body, np.ones(self.threads, bool))

    def _argument(self, kind: Type, waiting: list[Any]) -> Values:
        if isinstance(kind, Fields):
            return [self._argument(member, waiting) for member in kind.members]
        if isinstance(kind, Address):
            return self._same(self.memory.place_global(waiting.pop(0)))
        if isinstance(kind, Scalar):
            return self._same(concrete_numbers.bits_of(waiting.pop(0), kind))
        raise NotInterpreted(f"an argument of type {kind}")

    def _same(self, bits: int) -> Bits:
        return np.full((self.threads, 1), bits, np.uint64)

    def _block(self, block: Block, mask: NDArray[np.bool_]) -> list[Values]:
        for item in block.body:
            if item.name in _ENDS:
                return [self._env[number] for number in item.operands]
            results = self._instruction(item, mask)
            for number, result in zip(item.results, results, strict=True):
                self._env[number] = result
        return []

    def _instruction(self, item: Instruction, mask: NDArray[np.bool_]) -> list[Values]:
        values = [self._env[number] for number in item.operands]
        name = item.name
        if name in _QUIET:
            return []
        if name == "scf.if":
            return self._branch(item, values, mask)
        if name == "scf.for":
            return self._loop(item, values, mask)
        if name == "scf.while":
            return self._while(item, values, mask)
        if name.startswith("nvvm."):
            return self._gpu(item, values, mask)
        if name.startswith("llvm.") and name not in concrete_numbers.LLVM:
            return self._llvm(item, values, mask)
        return concrete_numbers.evaluate(item, values, self.threads)

    # ---- control flow ----

    def _branch(self, item: Instruction, values: list[Values], mask: NDArray[np.bool_]) -> Any:
        condition = (values[0][:, 0] & 1) != 0
        then = mask & condition
        other = mask & ~condition
        first = self._block(item.regions[0], then) if then.any() else None
        second = None
        if len(item.regions) > 1 and item.regions[1].body and other.any():
            second = self._block(item.regions[1], other)
        if first is None or second is None:
            return (first if second is None else second) or []
        return [_choose(condition, a, b) for a, b in zip(first, second, strict=True)]

    def _loop(self, item: Instruction, values: list[Values], mask: NDArray[np.bool_]) -> Any:
        kind = item.operand_types[0]
        assert isinstance(kind, Scalar)
        low, high, step = (as_signed(value, kind.width)[:, 0] for value in values[:3])
        carried, counter = values[3:], low.copy()
        body = item.regions[0]
        active = mask & (counter < high)
        while active.any():
            self._env[body.arguments[0]] = counter.astype(np.uint64)[:, None] & _ones(kind.width)
            for number, value in zip(body.arguments[1:], carried, strict=True):
                self._env[number] = value
            after = self._block(body, active)
            carried = [_choose(active, a, b) for a, b in zip(after, carried, strict=True)]
            counter = np.where(active, counter + step, counter)
            active = active & (counter < high)
        return carried

    def _while(self, item: Instruction, values: list[Values], mask: NDArray[np.bool_]) -> Any:
        before, after = item.regions
        active, current, results = mask.copy(), values, None
        while active.any():
            for number, value in zip(before.arguments, current, strict=True):
                self._env[number] = value
            condition, *forwarded = self._block(before, active)
            results = (
                forwarded
                if results is None
                else [_choose(active, a, b) for a, b in zip(forwarded, results, strict=True)]
            )
            active = active & ((condition[:, 0] & 1) != 0)
            if not active.any():
                break
            for number, value in zip(after.arguments, results, strict=True):
                self._env[number] = value
            going = self._block(after, active)
            current = [_choose(active, a, b) for a, b in zip(going, current, strict=True)]
        return results or []

    # ---- memory ----

    def _llvm(self, item: Instruction, values: list[Values], mask: NDArray[np.bool_]) -> Any:
        name = item.name
        if name == "llvm.alloca":
            size = (size_of(item.detail) or 1) * int(values[0][0, 0])
            return [self._same(self.memory.place_private(size))]
        if name == "llvm.mlir.addressof":
            return [self._same(self.memory.shared_address(item.detail))]
        if name == "llvm.getelementptr":
            return [self._moved(item, values)]
        if name in ("llvm.ptrtoint", "llvm.inttoptr", "llvm.addrspacecast"):
            return [values[0]]
        if name == "llvm.load":
            return [self._load(item.types[0], values[0][:, 0], mask)]
        if name == "llvm.store":
            kind = item.operand_types[0]
            if not isinstance(kind, Scalar | Vector):
                raise NotInterpreted(f"a store of {kind}")
            self.memory.store(values[1][:, 0], values[0], _element(kind), mask)
            return []
        if name == "llvm.extractvalue":
            found = values[0]
            for position in item.detail:
                found = found[position]
            return [found]
        if name == "llvm.insertvalue":
            members = list(values[0])
            members[item.detail[0]] = values[1]
            return [members]
        if name in ("llvm.mlir.undef", "llvm.mlir.poison"):
            return [_undefined(item.types[0], self.threads)]
        raise NotInterpreted(name)

    def _load(self, kind: Type, address: NDArray[np.uint64], mask: NDArray[np.bool_]) -> Bits:
        if isinstance(kind, Address):
            return self.memory.load(address, 1, kind.size, mask)
        if not isinstance(kind, Scalar | Vector):
            raise NotInterpreted(f"a load of {kind}")
        count = kind.count if isinstance(kind, Vector) else 1
        return self.memory.load(address, count, _element(kind), mask)

    def _moved(self, item: Instruction, values: list[Values]) -> Bits:
        kind, constants = item.detail
        size = size_of(kind)
        if len(constants) != 1 or size is None:
            raise NotInterpreted("an address with several indices")
        if constants[0] != DYNAMIC_INDEX:
            step = np.full((self.threads, 1), constants[0] * size, np.int64)
        else:
            index_kind = item.operand_types[1]
            assert isinstance(index_kind, Scalar)
            step = as_signed(values[1], index_kind.width) * size
        return (values[0].astype(np.int64) + step).astype(np.uint64)

    # ---- NVVM ----

    def _gpu(self, item: Instruction, values: list[Values], mask: NDArray[np.bool_]) -> Any:
        name = item.name
        thread = np.arange(self.threads, dtype=np.uint64)
        if name == "nvvm.read.ptx.sreg.tid.x":
            return [thread[:, None]]
        if name == "nvvm.read.ptx.sreg.laneid":
            return [(thread % 32)[:, None]]
        if name.startswith(("nvvm.read.ptx.sreg.tid", "nvvm.read.ptx.sreg.ctaid")):
            return [self._same(0)]
        if name == "nvvm.read.ptx.sreg.ntid.x":
            return [self._same(self.threads)]
        if name.startswith(("nvvm.read.ptx.sreg.ntid", "nvvm.read.ptx.sreg.nctaid")):
            return [self._same(1)]
        if name == "nvvm.shfl.sync":
            return [concrete_matrix.shuffle(item.detail, values)]
        if name == "nvvm.ldmatrix":
            registers = concrete_matrix.load_matrix(self.memory, item.detail, values[0], mask)
            return [registers if isinstance(item.types[0], Fields) else registers[0]]
        if name == "nvvm.stmatrix":
            concrete_matrix.store_matrix(self.memory, item.detail, values[0], values[1:], mask)
            return []
        if name == "nvvm.mma.sync":
            return [self._product(item, values, mask)]
        raise NotInterpreted(name)

    def _product(self, item: Instruction, values: list[Values], mask: NDArray[np.bool_]) -> Any:
        first = item.detail.registers[0]
        second = first + item.detail.registers[1]
        a, b, c = values[:first], values[first:second], values[second:]
        if item.site is not None:
            places = [
                self._place(item.operands[start:stop])
                for start, stop in ((0, first), (first, second), (second, len(values)))
            ]
            zeros = [15 * concrete_matrix.is_zero(item.detail, part, mask) for part in (a, b)]
            run = Execution(places[0], places[1], places[2], zeros[0], zeros[1])
            self.runs.setdefault(item.site, []).append(run)
        return concrete_matrix.multiply(item.detail, a, b, c)

    def _place(self, operands: tuple[int, ...]) -> int | None:
        """The offset in registers that a fragment was loaded from: its loads by way of casts."""
        found = list[int]()
        for number in operands:
            item = self.program.definitions.get(number)
            while item is not None and item.name.startswith(("vector.", "llvm.bitcast")):
                item = self.program.definitions.get(item.operands[0])
            if item is None or item.name != "llvm.load":
                return None
            found.append(self.memory.offset_of(int(self._env[item.operands[0]][0, 0])))
        return min(found)


def _element(kind: Scalar | Vector) -> int:
    return kind.element.size if isinstance(kind, Vector) else kind.size


def _ones(width: int) -> np.uint64:
    return np.uint64((1 << width) - 1)


def _undefined(kind: Type, threads: int) -> Values:
    if isinstance(kind, Fields):
        return [_undefined(member, threads) for member in kind.members]
    count = kind.count if isinstance(kind, Vector) else 1
    return np.zeros((threads, count), np.uint64)


def _choose(condition: NDArray[np.bool_], one: Values, other: Values) -> Values:
    if isinstance(one, list):
        members = cast("list[Values]", one)
        return [_choose(condition, a, b) for a, b in zip(members, other, strict=True)]
    return cast("Values", np.where(condition[:, None], one, other))
