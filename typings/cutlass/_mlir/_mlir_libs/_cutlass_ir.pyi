# The native module; its package picks the one for the driver.

from types import ModuleType

def populate(module: ModuleType) -> None: ...
