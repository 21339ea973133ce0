"""Texts as MLIR's string literals."""

from __future__ import annotations


def in_quotes(text: str) -> str:
    """The string literal that stands for `text`."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
