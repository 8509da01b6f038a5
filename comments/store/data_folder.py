"""Who may read the data folder: the user that the service runs as, and perhaps a group.

Owns the permissions of everything below it: 0700 and 0600, or with `DATA_GROUP` 0750 and 0640 of
that group, for backups. A new file is private from its first byte (the umask); what an older
release or somebody else left readable is restricted at every start.

What must stay true: nothing is opened here, see `emulator.storage.file_permissions`, and no link is
followed.
"""

import grp
import logging
import os
import stat
from collections.abc import Iterator
from pathlib import Path

_FILE, _FOLDER = 0o600, 0o700
_GROUP_FILE, _GROUP_FOLDER = 0o640, 0o2750  # new files of a folder take its group
_UMASK, _GROUP_UMASK = 0o077, 0o027
_OURS = ("flatthread.db", "secret", "first-owner", "address")  # what names of our files begin with

_log = logging.getLogger("flatthread")


def begin(group: str = "") -> None:
    """Have this process make private files from now on."""
    os.umask(_GROUP_UMASK if group else _UMASK)


def protect(folder: Path, group: str = "") -> list[Path]:
    """Restrict a data folder and what is in it; the paths where that was refused.

    A folder that serves other purposes too keeps its permissions, and so do files in it that are
    not ours: the log says so.
    """
    gid = grp.getgrnam(group).gr_gid if group else -1
    shared = _is_shared(folder)
    if shared:
        _log.warning(
            "%s is used for other things too, so its permissions stay as they are. "
            "Set DATA_DIR to a folder of its own.",
            folder,
        )
    paths = _ours(folder) if shared else _everything(folder)
    refused = [path for path in paths if not _restricted(path, gid)]
    if refused:
        _log.warning(
            "The permissions of %s%s cannot be restricted: other users of this machine may be able "
            "to read comments and addresses. Give the data folder to the user that runs this.",
            refused[0],
            f" and {len(refused) - 1} more files" if len(refused) > 1 else "",
        )
    return refused


def _everything(folder: Path) -> Iterator[Path]:
    yield folder
    for parent, folders, files in os.walk(folder, onerror=None, followlinks=False):
        yield from (Path(parent, name) for name in (*folders, *files))


def _ours(folder: Path) -> Iterator[Path]:
    for path in folder.iterdir():
        if path.name.startswith(_OURS):
            yield from _everything(path)


def _is_shared(folder: Path) -> bool:
    """Whether a folder is plainly not the service's alone: a home, a root, a working directory."""
    found = folder.resolve()
    is_sticky = bool(found.stat().st_mode & stat.S_ISVTX)
    return is_sticky or found in {Path.home().resolve(), Path.cwd().resolve(), Path(found.anchor)}


def _restricted(path: Path, gid: int) -> bool:
    """Whether a file or folder has its permissions now."""
    try:
        found = path.lstat()
        wanted = _wanted(found.st_mode, has_group=gid >= 0)
        if wanted is None:
            return True
        if gid not in {-1, found.st_gid}:
            os.chown(path, -1, gid, follow_symlinks=False)
        if stat.S_IMODE(found.st_mode) != wanted:
            path.chmod(wanted)
    except FileNotFoundError:  # another process has removed it
        return True
    except OSError:
        return False
    return True


def _wanted(mode: int, *, has_group: bool) -> int | None:
    """The permissions that a file or folder is to have; None for links and everything else."""
    if stat.S_ISDIR(mode):
        return _GROUP_FOLDER if has_group else _FOLDER
    if stat.S_ISREG(mode):
        return _GROUP_FILE if has_group else _FILE
    return None
