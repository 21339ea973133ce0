"""Dumping a pipeline alone: passes of tilepass and of Triton on a file, as in tilepass-opt."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

from tilepass.core.errors import TilepassError
from tilepass.core.pass_base import Pass, Target
from tilepass.core.remarks import Remark
from tilepass.dump.kernel_files import KernelFiles, RecorderOptions, Said, slug
from tilepass.dump.steps import CompilationRecord, write_compilation
from tilepass.dump.store import new_folder
from tilepass.opt.file_run import FileRun
from tilepass.opt.source import read_source
from tilepass.opt.work import is_cute


def dump_pipeline(
    path: Path,
    target: Target | None,
    pipeline: str,
    load: Sequence[str],
    options: RecorderOptions,
) -> None:
    """Run exactly the passes of `pipeline` on the module in `path`; no stage of a compiler runs.

    Raises TilepassError: the file does not parse, a pass is unknown or fails, the disk is full.
    """
    source = read_source(str(path))
    run = FileRun.of(source, pipeline, target, load=load)
    work, target = run.work, run.target
    if not run.steps:
        raise TilepassError(f"{path}: no passes to run: give them with -p")
    stage = path.suffix.removeprefix(".") or "mlir"
    folder = new_folder(options.folder, slug(path.stem))
    record = CompilationRecord(
        kernel=path.name,
        key=hashlib.sha256(f"{pipeline}\0{source.text}".encode()).hexdigest(),
        language="cute" if is_cute(source.text) else "triton",
        backend=target.backend if target else "",
        arch=target.arch if target else "",
        compiler=str(work.compiler),
        pipeline=pipeline,
        goal="pipeline",
    )
    write_compilation(folder, record)
    files = KernelFiles(folder, options)
    files.add_source(work.text("pretty", debug_info=options.locations) + "\n")
    for step in run.steps:
        context, _ = run.run(step, _ignore)
        text = work.text("pretty", debug_info=options.locations) + "\n"
        origin = "tilepass" if isinstance(step, Pass) else "triton"
        files.add_pass(stage, str(step), origin, text, Said.in_context(context))


def _ignore(remark: Remark) -> None:
    """Remarks are in the context, and from there in the dump."""
