"""Skip tests if the machine lacks a program or permission that they need; in CI, fail them.

Only this module skips tests. With CI=true, a missing program or permission fails the test. Real
exports are the only exception: they may be missing in CI, because we may not publish them and keep
them outside the repository. `scripts/test` recognizes this skip by its reason.
"""

import os
from pathlib import Path

import pytest

from tests.support import programs

EXPORTS = Path(__file__).parents[3] / "shared" / "data"


def require(is_there: object, reason: str) -> None:
    """Continue if the tool is present; otherwise skip the test or, in CI, fail it."""
    if is_there:
        return
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)


def mounts() -> None:
    """Require a machine that can give a program separate mounts."""
    require(programs.can_mount(), "needs mounts of its own: root, or user namespaces")


def root() -> None:
    """Require that the tests run as root."""
    require(os.geteuid() == 0, "only root can act as another user")


def real_export(name: str) -> Path:
    """Return the path of a real export; skip the test if the export is missing."""
    path = EXPORTS / name
    if not path.exists():
        pytest.skip(f"needs {name} of the shared data beside the repository")
    return path
