"""The command line of `tilepass-opt`, read into one frozen record."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import tilepass
from tilepass.core.errors import TilepassError
from tilepass.core.flags import add_traceback_flag
from tilepass.core.pass_base import Target
from tilepass.core.pipeline_spec import Pipeline, PipelineItem, parse_pipeline

PrintMoment = Literal["before", "after"]


@dataclass(frozen=True)
class IrPrinting:
    """After or before which passes the IR is printed on stderr."""

    before: frozenset[str] = frozenset()
    after: frozenset[str] = frozenset()
    before_all: bool = False
    after_all: bool = False
    only_changes: bool = False

    def wanted(self, moment: PrintMoment, pass_name: str) -> bool:
        """Whether the IR is to be printed at this moment of this pass."""
        if moment == "before":
            return self.before_all or pass_name in self.before
        return self.after_all or self.only_changes or pass_name in self.after

    def __bool__(self) -> bool:
        return bool(
            self.before or self.after or self.before_all or self.after_all or self.only_changes
        )


@dataclass(frozen=True)
class RemarkFilter:
    """Per kind of remark, the passes whose remarks are printed; None for no pass."""

    passed: re.Pattern[str] | None = None
    # A pass that was asked for and could not fire says so, without being asked to.
    missed: re.Pattern[str] | None = re.compile("")
    analysis: re.Pattern[str] | None = None

    def wanted(self, kind: Literal["passed", "missed", "analysis"], pass_name: str) -> bool:
        """Whether a remark of this kind from this pass is to be printed."""
        pattern: re.Pattern[str] | None = getattr(self, kind)
        return pattern is not None and pattern.search(pass_name) is not None


@dataclass(frozen=True)
class OptOptions:
    """What the user asked `tilepass-opt` for; `file` is `-` for standard input.

    `flags_known` is not empty if the passes were given as flags: a name in the pipeline that is no
    pass may be a misspelt one of these.
    """

    file: str | None
    pipeline: Pipeline = field(default_factory=Pipeline)
    target: Target | None = None
    output: str = "-"
    load: tuple[str, ...] = ()
    emit: Literal["pretty", "generic"] = "pretty"
    split_input: bool = False
    verify_diagnostics: bool = False
    allow_unregistered_dialect: bool = False
    debug_info: bool = False
    list_passes: bool = False
    help_pass: str | None = None
    flags_known: tuple[str, ...] = ()
    ir_printing: IrPrinting = field(default_factory=IrPrinting)
    remarks: RemarkFilter = field(default_factory=RemarkFilter)


def parse_arguments(arguments: Sequence[str]) -> OptOptions:
    """Read a command line. A usage error exits with 2, as argparse does.

    Raises TilepassError for a value that is well placed but wrong.
    """
    parser = _parser()
    known, others = parser.parse_known_args(list(map(_two_dashes, arguments)))
    passes = [_pass_from_flag(flag, parser) for flag in others]
    if passes and known.pipeline:
        parser.error("give the passes either in -p or as flags, not in both")
    if known.file is None and not known.list_passes and known.help_pass is None:
        parser.error("a FILE is missing (use - for standard input)")
    return OptOptions(
        file=known.file,
        pipeline=Pipeline(tuple(passes)) if passes else parse_pipeline(known.pipeline),
        target=Target.parse(known.target, "--target") if known.target else None,
        output=known.output,
        load=tuple(known.load),
        emit=known.emit,
        split_input=known.split_input_file,
        verify_diagnostics=known.verify_diagnostics,
        allow_unregistered_dialect=known.allow_unregistered_dialect,
        debug_info=known.mlir_print_debuginfo,
        list_passes=known.list_passes,
        help_pass=known.help_pass,
        flags_known=_flag_names(parser) if passes else (),
        ir_printing=_ir_printing(known),
        remarks=_remark_filter(known),
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="tilepass-opt",
        usage="tilepass-opt FILE|- [-p PIPELINE] [options]",
        description="Run passes of tilepass and of Triton on IR.",
        epilog="A pass may also be given as a flag, as to mlir-opt: --canonicalize, "
        "--tritongpu-pipeline=num-stages=3. One dash does for long flags, too.",
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("--version", action="version", version=f"tilepass {tilepass.__version__}")
    add("file", nargs="?", metavar="FILE", help=".mlir, .ttir or .ttgir; - for standard input")
    add("-p", "--pass-pipeline", dest="pipeline", default="", metavar="PIPELINE",
        help="'a{x=1},b' or 'builtin.module(a{x=1},b)'")  # fmt: skip
    add("-o", dest="output", default="-", metavar="FILE", help="write the IR there")
    add("--target", metavar="BACKEND:ARCH", help="cuda:90, hip:gfx942, ... (default: the module's)")
    add("--load", action="append", default=[], metavar="FILE", help="a Python file of passes")
    add("--emit", choices=("pretty", "generic"), default="pretty", help="form of the output")
    add("--list-passes", action="store_true", help="list every pass with its options")
    add("--help-pass", metavar="NAME", help="all that a pass says of itself")
    for name, text in _SWITCHES.items():
        add(f"--{name}", action="store_true", help=text)
    for moment in ("before", "after"):
        add(f"--mlir-print-ir-{moment}", default="", metavar="PASS,...",
            help=f"print the IR on stderr {moment} these passes")  # fmt: skip
    for kind, flag in _REMARK_FLAGS.items():
        add(flag, dest=f"remarks_{kind}", metavar="REGEX",
            help=f"print the '{kind}' remarks of passes whose name matches")  # fmt: skip
    add("-Rno-pass-missed", dest="no_missed", action="store_true",
        help="do not print 'missed' remarks, which are printed by default")  # fmt: skip
    add_traceback_flag(parser)
    return parser


_SWITCHES = {
    "split-input-file": "process the parts between '// -----' lines one by one",
    "verify-diagnostics": "check the diagnostics against expected-error comments and their like",
    "allow-unregistered-dialect": "accept operations of unknown dialects (input in generic form)",
    "mlir-print-debuginfo": "print locations; a CuTe module is in generic form then",
    "mlir-print-ir-before-all": "print the IR on stderr before every pass",
    "mlir-print-ir-after-all": "print the IR on stderr after every pass",
    "mlir-print-ir-after-change": "print the IR on stderr after every pass that changed it",
}


_REMARK_FLAGS = {"passed": "-Rpass", "missed": "-Rpass-missed", "analysis": "-Rpass-analysis"}
# Those of MLIR's tools begin with two dashes or with one, and so do passes given as flags.
_ONE_DASH = re.compile(r"-(?!Rpass|Rno-pass)[A-Za-z][\w-]")


def _two_dashes(argument: str) -> str:
    """`-canonicalize` as `--canonicalize`: argparse would take `-optimize-...` for `-o`."""
    return f"-{argument}" if _ONE_DASH.match(argument) else argument


def _flag_names(parser: argparse.ArgumentParser) -> tuple[str, ...]:
    words = parser.format_help().replace(",", " ").split()
    return tuple(word.lstrip("-") for word in words if re.match(r"-{1,2}[A-Za-z][\w-]+$", word))


def _pass_from_flag(flag: str, parser: argparse.ArgumentParser) -> PipelineItem:
    """`--name=a=1 b=2` as mlir-opt takes it."""
    if not re.match(r"--?[A-Za-z]", flag):
        parser.error(f"unexpected argument '{flag}'")
    name, _, options = flag.lstrip("-").partition("=")
    return parse_pipeline(f"{name}{{{options}}}" if options else name).items[0]


def _ir_printing(known: Any) -> IrPrinting:
    return IrPrinting(
        before=frozenset(filter(None, known.mlir_print_ir_before.split(","))),
        after=frozenset(filter(None, known.mlir_print_ir_after.split(","))),
        before_all=known.mlir_print_ir_before_all,
        after_all=known.mlir_print_ir_after_all,
        only_changes=known.mlir_print_ir_after_change,
    )


def _remark_filter(known: Any) -> RemarkFilter:
    passed, missed, analysis = (
        _pattern(flag, getattr(known, f"remarks_{kind}")) for kind, flag in _REMARK_FLAGS.items()
    )
    return RemarkFilter(
        passed=passed,
        missed=None if known.no_missed else missed or RemarkFilter.missed,
        analysis=analysis,
    )


def _pattern(flag: str, text: str | None) -> re.Pattern[str] | None:
    if text is None:
        return None
    try:
        return re.compile(text)
    except re.error as error:
        raise TilepassError(f"{flag}={text}: not a regular expression: {error}") from error
