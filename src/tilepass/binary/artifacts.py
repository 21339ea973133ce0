"""What a compilation left: the texts of its stages, the binary, and its metadata."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

from tilepass.binary.tools import Tools, find_tools
from tilepass.core.errors import TilepassError

BINARY_STAGES = ("cubin", "hsaco")


class CompiledKernel(Protocol):
    """What `triton.compile` returns, as far as it is used here."""

    asm: Any
    metadata: Any


@dataclass(frozen=True)
class Artifacts:
    """One compiled kernel without the compiler's objects.

    `texts` maps stages ("ttir", "ttgir", "llir", "ptx" or "amdgcn") to their text; `binary_stage`
    is "cubin" or "hsaco"; `metadata` is Triton's: target, options, shared memory in bytes. `tools`
    are those of the Triton that compiled it, None for the installed one's. A binary that the CuTe
    DSL compiled may hold several kernels, and comes from an assembler that is not at hand.
    """

    name: str
    binary_stage: str
    binary: bytes
    texts: Mapping[str, str]
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any])
    tools: Tools | None = None
    compiled_by: Literal["triton", "cute"] = "triton"

    @property
    def is_nvidia(self) -> bool:
        return self.binary_stage == "cubin"

    @property
    def target(self) -> tuple[str, int | str]:
        """Backend and architecture: ("cuda", 90), ("hip", "gfx942"). Raises TilepassError where
        the metadata names none."""
        target: Any = self.metadata.get("target")
        if target is None:
            raise TilepassError(f"kernel '{self.name}': its metadata names no target")
        # A compiled kernel holds an object, the cache's JSON file a mapping.
        if isinstance(target, Mapping):
            return str(target["backend"]), target["arch"]  # pyright: ignore[reportUnknownArgumentType,reportUnknownVariableType]
        return target.backend, target.arch

    def nvidia_tools(self) -> Tools:
        """The tools for a cubin. Raises TilepassError for another binary, or without tools."""
        backend, arch = self.target
        if backend != "cuda" or not isinstance(arch, int):
            raise TilepassError(f"kernel '{self.name}': {backend}:{arch} is not a CUDA target")
        return self.tools or find_tools(arch)


def artifacts_of(compiled: CompiledKernel) -> Artifacts:
    """The artifacts of a kernel that Triton compiled or took from its cache.

    Raises TilepassError where it holds no binary.
    """
    stages: Mapping[str, str | bytes] = dict(compiled.asm)
    metadata: dict[str, Any] = dict(compiled.metadata._asdict())
    texts = {stage: value for stage, value in stages.items() if isinstance(value, str)}
    for stage in BINARY_STAGES:
        binary = stages.get(stage)
        if isinstance(binary, bytes):
            return Artifacts(str(metadata["name"]), stage, binary, texts, metadata)
    raise TilepassError(
        f"kernel '{metadata.get('name')}' has no binary (stages: {', '.join(stages)})"
    )


def read_artifacts(binary: Path) -> Artifacts:
    """The artifacts that stand beside a `.cubin` or `.hsaco` file: `NAME.ptx`, `NAME.json`, ...

    This is how Triton's cache folders and the folders of `dump-ir` are laid out. Raises
    TilepassError where the file is missing, or is not a binary by its suffix.
    """
    stage = binary.suffix.removeprefix(".")
    if stage not in BINARY_STAGES:
        raise TilepassError(f"{binary}: expected a file named *.cubin or *.hsaco")
    if not binary.is_file():
        raise TilepassError(f"{binary}: no such file")
    texts = {
        file.suffix.removeprefix("."): file.read_text(errors="replace")
        for file in sorted(binary.parent.glob(f"{binary.stem}.*"))
        if file.suffix in (".source", ".ttir", ".ttgir", ".llir", ".ptx", ".amdgcn")
    }
    described = binary.with_suffix(".json")
    metadata: dict[str, Any] = {}
    if described.is_file():
        metadata = json.loads(described.read_text())
    return Artifacts(
        str(metadata.get("name", binary.stem)),
        stage,
        binary.read_bytes(),
        texts,
        metadata,
        compiled_by=metadata.get("compiled_by", "triton"),
    )
