"""Skip tests if the machine lacks a program or permission that they need; in CI, fail them.

Only this module skips tests. With CI=true, a missing program or permission fails the test. There
are three exceptions, and `scripts/test` recognizes these skips by their reasons: real exports may
be missing in CI, because we may not publish them and keep them outside the repository; so may
Google's programs, because Google's package repository is not part of Debian; and so may podman with
a base image, because CI itself often runs in a container, which can rarely start others.
"""

import os
import re
import shutil
import subprocess
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


def firestore_emulator() -> Path:
    """Return the program of Google's Firestore emulator; skip the test if it is missing."""
    tools = Path(shutil.which("gcloud") or "gcloud").resolve().parents[1]
    path = tools / "platform" / "cloud-firestore-emulator" / "cloud_firestore_emulator"
    if not (path.exists() and shutil.which("java")):
        pytest.skip("needs Java and the Firestore emulator of the Google Cloud CLI")
    return path


def gcloud_commands() -> Path:
    """Return the list of commands of the Google Cloud CLI; skip the test if it is missing."""
    tools = Path(shutil.which("gcloud") or "gcloud").resolve().parents[1]
    path = tools / "data" / "cli" / "gcloud_completions.py"
    if not path.exists():
        pytest.skip("needs the list of commands of the Google Cloud CLI")
    return path


def container_base() -> str:
    """Return the image on which podman can build ours; skip the test if podman has none.

    The image is CONTAINER_BASE or else the base that the Dockerfile names.
    """
    named = re.search(r"^ARG BASE=(.+)$", (programs.ROOT / "Dockerfile").read_text(), re.MULTILINE)
    assert named is not None
    base = os.environ.get("CONTAINER_BASE") or named[1]
    has_base = shutil.which("podman") and (
        _succeeds("podman", "image", "exists", base) or _succeeds("podman", "pull", "--quiet", base)
    )
    if not has_base:
        pytest.skip(f"needs podman and {base}, the base image of the container")
    return base


def _succeeds(*command: str) -> bool:
    return subprocess.run(command, check=False, capture_output=True).returncode == 0
