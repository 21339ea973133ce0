"""A hook of mkdocs: the page of all passes, from their docstrings and options.

The text of each is what `tilepass-opt --help-pass NAME` prints.
"""

from __future__ import annotations

from typing import Any

from mkdocs.structure.files import File

_HEAD = """# All passes and options

Each text is what `tilepass-opt --help-pass NAME` prints: what the pass does, what makes it sound,
and what it refuses. Behind `@` stands where it runs; `NAME@before:PASS`, `NAME@after:PASS`,
`NAME@start:STAGE` and `NAME@end:STAGE` run it somewhere else in its compiler.
"""


def on_files(files: Any, config: Any) -> Any:
    """Add the page `passes.md`."""
    from tilepass.core.registry import pass_names
    from tilepass.opt.listing import describe_pass

    sections = [
        f"## {name}\n\n```text\n{describe_pass(name)}\n```\n"
        for name in pass_names()
        if not name.startswith("test-")
    ]
    files.append(File.generated(config, "passes.md", content="\n".join([_HEAD, *sections])))
    return files
