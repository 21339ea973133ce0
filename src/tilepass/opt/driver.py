"""Read, run the passes, print: one part of the input after the other."""

from __future__ import annotations

import sys
from pathlib import Path

from tilepass.core.errors import TilepassError
from tilepass.core.pass_base import Pass
from tilepass.core.registry import load_file
from tilepass.core.remarks import Remark
from tilepass.opt.contexts import target_of_module
from tilepass.opt.file_run import FileRun
from tilepass.opt.ir_printing import IrPrinter, check_pass_names
from tilepass.opt.light_triton import load_libtriton
from tilepass.opt.log import Log
from tilepass.opt.options import OptOptions
from tilepass.opt.source import SPLIT_MARKER, Part, read_source, split
from tilepass.opt.steps import Step, resolve
from tilepass.opt.verify_diagnostics import verify_diagnostics
from tilepass.opt.work import Work, open_work


def run(options: OptOptions) -> int:
    """Do what the command line asks for; returns the exit status.

    Raises TilepassError for what concerns the whole run. An error in one part of a split input is
    printed, and the other parts are processed all the same.
    """
    for file in options.load:
        load_file(file)
    if options.list_passes:
        from tilepass.opt.listing import list_passes

        print(list_passes())
        return 0
    if options.help_pass is not None:
        from tilepass.opt.listing import describe_pass

        print(describe_pass(options.help_pass))
        return 0
    source = read_source(options.file or "-")
    load_libtriton()
    steps = resolve(options.pipeline, options.target, options.flags_known)
    check_pass_names(options.ir_printing, [step.name for step in steps])
    parts = [source]
    if options.split_input:
        parts, warnings = split(source)
        for warning in warnings:
            print(warning.format(), file=sys.stderr)
    outputs = [_process(part, steps, options) for part in parts]
    if options.verify_diagnostics or None not in outputs or len(parts) > 1:
        _write(options.output, f"{SPLIT_MARKER}\n".join(out or "" for out in outputs))
    return 1 if None in outputs else 0


def _process(part: Part, steps: list[Step], options: OptOptions) -> str | None:
    """The text of the part after all passes; None if it failed or failed verification."""
    log = Log(part.file, options.remarks, verify=options.verify_diagnostics)
    output: str | None = None
    try:
        output = _run_steps(part, steps, options, log)
    except TilepassError as error:
        log.failure(error)
    if not options.verify_diagnostics:
        return output
    failures = verify_diagnostics(part, log.produced)
    for failure in failures:
        print(failure.format(), file=sys.stderr)
    return None if failures else output or ""


def _run_steps(part: Part, steps: list[Step], options: OptOptions, log: Log) -> str:
    work = open_work(part, allow_unregistered_dialect=options.allow_unregistered_dialect)
    printer = IrPrinter(options, work)
    target = options.target or (target_of_module(part) if steps else None)
    run = FileRun(work, steps, target)
    for step in steps:
        printer.print_ir("before", step.name)
        if isinstance(step, Pass) and step.touches:
            _tell_if_idle(step, work, log)
        _, diagnostics = run.run(step, log.remark)
        for diagnostic in diagnostics:
            log.diagnostic(diagnostic)
        printer.print_ir("after", step.name)
    return work.text(options.emit, debug_info=options.debug_info) + "\n"


def _tell_if_idle(step: Pass, work: Work, log: Log) -> None:
    """A pass that the user asked for and that has nothing to work on says so."""
    if work.operation_names().isdisjoint(step.touches):
        message = f"the module holds none of {', '.join(step.touches)}"
        log.remark(Remark("missed", step.name, message))


def _write(file: str, text: str) -> None:
    if file == "-":
        sys.stdout.write(text)
        return
    path = Path(file)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise TilepassError(f"-o {file}: {error.strerror or error}") from error
