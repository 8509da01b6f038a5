"""Renamed modules: their old names remain importable in all 0.x versions.

Importing an old name imports the module that replaced it, and issues one DeprecationWarning. The
list contains the module names that the guide told users to import.
"""

import importlib
import importlib.machinery
import sys
import types
import warnings
from collections.abc import Sequence

MOVED = {
    "emulator.faults": "emulator.fault_injection.fault_plans",
    "emulator.fixtures": "emulator.pytest_plugin",
    "emulator.inspection": "emulator.storage.inspection",
    "emulator.maintenance": "emulator.storage.maintenance",
    "emulator.meter": "emulator.execution.cost_meter",
}


class _Finder:  # not a subclass of importlib.abc.Loader, whose import adds 10 ms to every start
    """Imports a moved module under its old name."""

    def find_spec(
        self,
        fullname: str,
        _path: Sequence[str] | None,
        _target: types.ModuleType | None = None,
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname not in MOVED:
            return None
        return importlib.machinery.ModuleSpec(fullname, self)  # type: ignore[arg-type]

    def create_module(self, _spec: importlib.machinery.ModuleSpec) -> None:
        """Let Python create the module that `exec_module` replaces."""

    def exec_module(self, module: types.ModuleType) -> None:
        moved = MOVED[module.__name__]
        warnings.warn(f"{module.__name__} is now {moved}", DeprecationWarning, stacklevel=2)
        sys.modules[module.__name__] = importlib.import_module(moved)


def install() -> None:
    """Make the old names importable."""
    sys.meta_path.append(_Finder())
