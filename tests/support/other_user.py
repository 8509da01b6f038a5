"""Check what a different user on this machine can read."""

import pwd
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def reachable_folder() -> Iterator[Path]:
    """Yield a folder that every user can enter, unlike the parents of pytest's folders."""
    with tempfile.TemporaryDirectory(prefix="flatthread-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder


def can_read(path: Path) -> bool:
    """Return whether the user `nobody` can list a folder or read a file."""
    nobody = pwd.getpwnam("nobody")
    verb = "ls" if path.is_dir() else "cat"
    done = subprocess.run(
        [f"/bin/{verb}", str(path)],
        user=nobody.pw_uid,
        group=nobody.pw_gid,
        extra_groups=[],
        capture_output=True,
        check=False,
    )
    assert not done.returncode or b"Permission denied" in done.stderr
    return not done.returncode


def modes(folder: Path) -> dict[str, str]:
    """Return the permissions of a folder and of everything in it, by path."""
    paths = [folder, *sorted(folder.rglob("*"))]
    return {
        path.relative_to(folder.parent).as_posix(): oct(path.lstat().st_mode & 0o7777)
        for path in paths
        if not path.is_symlink()
    }
