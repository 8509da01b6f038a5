"""Skip tests that need a program or permission that the machine lacks; in CI, fail them.

Only this module skips tests. With CI=true a missing program or permission fails the test. Only real
exports may also be missing in CI: we may not publish them, so they are kept outside the repository.
`scripts/test` recognizes this skip by its reason.
"""

import os
from pathlib import Path

import pytest

from tests.support import programs

EXPORTS = Path(__file__).parents[3] / "shared" / "data"


def require(is_there: object, reason: str) -> None:
    """Continue if the tool is present; otherwise skip the test, or fail it in CI."""
    if is_there:
        return
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)


def mounts() -> None:
    """Require that the machine can give a program its own mounts."""
    require(programs.can_mount(), "needs mounts of its own: root, or user namespaces")


def root() -> None:
    """Require that the tests run as root."""
    require(os.geteuid() == 0, "only root can act as another user")


def real_export(name: str) -> Path:
    """Return the path of a real export; skip the test if it is missing."""
    path = EXPORTS / name
    if not path.exists():
        pytest.skip(f"needs {name} of the shared data beside the repository")
    return path
