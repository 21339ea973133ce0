"""`--verify-diagnostics`: the diagnostics of a part against the `expected-...` comments in it.

The comments are MLIR's: `// expected-error@+1 {{text}}`, the place being the comment's own line,
`@+N`, `@-N`, `@above`, `@below` (the next line without a comment of this kind) or `@unknown`.
`{{text}}` must occur in the message; `expected-error-re` takes regular expressions in inner `{{}}`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tilepass.core.diagnostics import Diagnostic, Severity, SourceLocation
from tilepass.opt.source import Part, lines_of

_COMMENT = re.compile(
    r"expected-(error|note|remark|warning)(-re)? *(?:@([+-]\d+|above|below|unknown))? *"
    r"\{\{(.*)\}\}\s*$"
)
_MALFORMED = re.compile(r"//\s*expected-(?:error|note|remark|warning)\b")


@dataclass(frozen=True)
class Produced:
    """A diagnostic that a part produced; an optional one may be expected but need not be."""

    diagnostic: Diagnostic
    optional: bool = False


@dataclass
class _Expectation:
    """One comment: `line` is that of the diagnostic, None for one without a location."""

    severity: Severity
    text: str
    pattern: re.Pattern[str]
    line: int | None
    comment: SourceLocation
    met: bool = False

    def covers(self, diagnostic: Diagnostic, file: str) -> bool:
        """Whether place and text fit; the severity may not."""
        location = diagnostic.location
        known = location is not None and location.file == file and location.line > 0
        line = location.line if location and known else None
        return line == self.line and self.pattern.search(diagnostic.message) is not None


def verify_diagnostics(part: Part, produced: Sequence[Produced]) -> list[Diagnostic]:
    """The differences, as errors; empty when the part produced what its comments expect."""
    expectations, failures = _read_expectations(part)
    for one in produced:
        for diagnostic in _with_notes(one.diagnostic):
            failure = _check(diagnostic, expectations, part.file)
            if failure and not one.optional:
                failures.append(failure)
    for expectation in expectations:
        if not expectation.met:
            message = f'expected {expectation.severity} "{expectation.text}" was not produced'
            failures.append(Diagnostic("error", message, expectation.comment))
    return failures


def _check(
    diagnostic: Diagnostic, expectations: Sequence[_Expectation], file: str
) -> Diagnostic | None:
    fitting = [one for one in expectations if one.covers(diagnostic, file)]
    same = [one for one in fitting if one.severity == diagnostic.severity]
    if same:
        # Of equal comments each expects its own diagnostic.
        next((one for one in same if not one.met), same[0]).met = True
        return None
    message = f"unexpected {diagnostic.severity}: {diagnostic.message}"
    if fitting:
        message += f" (a {fitting[0].severity} was expected)"
    return Diagnostic("error", message, diagnostic.location)


def _with_notes(diagnostic: Diagnostic) -> Iterator[Diagnostic]:
    yield diagnostic
    for note in diagnostic.notes:
        yield from _with_notes(note)


def _read_expectations(part: Part) -> tuple[list[_Expectation], list[Diagnostic]]:
    expectations: list[_Expectation] = []
    failures: list[Diagnostic] = []
    # Those of `@below`: their line is that of the next line without a comment.
    waiting: list[_Expectation] = []
    last_other_line: int | None = None
    for number, line in enumerate(lines_of(part.text), part.first_line):
        match = _COMMENT.search(line)
        if match is None:
            if malformed := _MALFORMED.search(line):
                failures.append(_malformed(part.file, number, malformed))
            for expectation in waiting:
                expectation.line = number
            waiting, last_other_line = [], number
            continue
        place = SourceLocation(part.file, number, match.start() + 1)
        try:
            expectation = _expectation(match, place, last_other_line)
        except ValueError as error:
            failures.append(Diagnostic("error", str(error), place))
            continue
        expectations.append(expectation)
        if match[3] == "below":
            waiting.append(expectation)
    return expectations, failures


def _expectation(
    match: re.Match[str], place: SourceLocation, line_above: int | None
) -> _Expectation:
    severity: Severity = match[1]  # pyright: ignore[reportAssignmentType]
    designator = match[3]
    if designator == "unknown":
        line = None
    elif designator == "above":
        if line_above is None:
            raise ValueError("'@above' with no line above")
        line = line_above
    else:
        offset = designator if designator and designator != "below" else "0"
        line = place.line + int(offset)
    pattern = _regex(match[4]) if match[2] else re.compile(re.escape(match[4]))
    return _Expectation(severity, match[4], pattern, line, place)


def _regex(text: str) -> re.Pattern[str]:
    """Literal text with regular expressions in `{{}}`. Raises ValueError."""
    pieces = re.split(r"\{\{(.*?)\}\}", text)
    source = "".join(
        f"(?:{piece})" if index % 2 else re.escape(piece) for index, piece in enumerate(pieces)
    )
    try:
        return re.compile(source)
    except re.error as error:
        raise ValueError(f"'{text}' holds no valid regular expression: {error}") from error


def _malformed(file: str, line: int, match: re.Match[str]) -> Diagnostic:
    message = "expected-... comment without a text in {{}} at the end of the line"
    return Diagnostic("error", message, SourceLocation(file, line, match.start() + 1))
