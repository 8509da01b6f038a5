"""What some tests need and a machine may lack: those tests are skipped there, but never in CI.

The one place that skips. With CI=true a missing program or right fails the test that asks for it.
Only real exports may be missing there too: they are not ours to publish, and lie beside the
repository. `scripts/test` knows that one skip by its reason.
"""

import os
import platform
from pathlib import Path

import pytest

from tests.support import programs

EXPORTS = Path(__file__).parents[3] / "shared" / "data"


def require(is_there: object, reason: str) -> None:
    """Go on where something is there; else skip the test, or fail it in CI."""
    if is_there:
        return
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)


def mounts() -> None:
    """Go on where a program can have mounts of its own."""
    require(programs.can_mount(), "needs mounts of its own: root, or user namespaces")


def root() -> None:
    """Go on where the tests run as root."""
    require(os.geteuid() == 0, "only root can act as another user")


def glibc() -> None:
    """Go on where the C library is the one that can be told how to keep memory."""
    require(platform.libc_ver()[0] == "glibc", "needs glibc")


def real_export(name: str) -> Path:
    """The path of a real export; skips the test where it is missing."""
    path = EXPORTS / name
    if not path.exists():
        pytest.skip(f"needs {name} of the shared data beside the repository")
    return path
