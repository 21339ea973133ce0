"""Packages that only some commands use, and the extra of tilepass that brings each; pyproject.toml
says the same to pip."""

EXTRAS = {"torch": "torch", "matplotlib": "plot", "lit": "lit", "filecheck": "lit"}
