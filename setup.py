"""The part of the build that `pyproject.toml` cannot say: where the start-up hook goes."""

from pathlib import Path
from typing import Any, cast

from setuptools import setup
from setuptools.command.build_py import build_py

STARTUP_HOOK = "tilepass_startup.pth"


class BuildPy(build_py):
    """Put the start-up hook next to the package, where the interpreter looks for `.pth` files.

    With it, setting the variable TILEPASS is enough to activate a pipeline in a program and in the
    processes that it starts. An editable install takes no files from the build folder, so there the
    hook goes straight into the wheel.
    """

    def run(self) -> None:
        """Build the package, then add the hook."""
        super().run()
        self.copy_file(str(Path("src", STARTUP_HOOK)), str(Path(self._hook_folder(), STARTUP_HOOK)))

    def get_outputs(self, include_bytecode: bool = True) -> list[str]:
        """The built files, the hook included."""
        hook = str(Path(self._hook_folder(), STARTUP_HOOK))
        return [*super().get_outputs(include_bytecode), hook]

    def _hook_folder(self) -> str:
        if not self.editable_mode:
            return self.build_lib
        install = cast("Any", self.get_finalized_command("install"))
        return str(install.install_lib)


setup(cmdclass={"build_py": BuildPy})
