"""Restrict the data folder's permissions to the service's user and, optionally, one group.

Files have mode 0600 and folders 0700. With `DATA_GROUP`, which lets a group make backups, files
have mode 0640, folders have mode 0750, and both belong to that group. The umask makes a new file
private from its first byte. At every start, the service restricts files that an older release or
another program left readable.

This module never follows a symbolic link, and never opens a file (see
`datastore_emulator.storage.file_permissions`).
"""

import grp
import logging
import os
import stat
from collections.abc import Iterator
from pathlib import Path

_FILE, _FOLDER = 0o600, 0o700
_GROUP_FILE, _GROUP_FOLDER = 0o640, 0o2750  # setgid: new files inherit the folder's group
_UMASK, _GROUP_UMASK = 0o077, 0o027
# Name prefixes of the service's own files
_OURS = (
    "flatthread.db",
    "flatthread-before-",
    "secret",
    "first-owner",
    "address",
    "backup.",
    "starting",
)

_log = logging.getLogger("flatthread")


def begin(group: str = "") -> None:
    """From now on, make every new file of this process private."""
    os.umask(_GROUP_UMASK if group else _UMASK)


def protect(folder: Path, group: str = "") -> list[Path]:
    """Restrict a data folder and its contents. Return the paths that could not be restricted.

    If the folder also has other uses, the permissions of the folder and of files that the service
    did not create stay unchanged, and a warning is logged.
    """
    gid = grp.getgrnam(group).gr_gid if group else -1
    shared = _is_shared(folder)
    if shared:
        _log.warning(
            "%s also has other uses, so its permissions stay as they are. "
            "Set FLATTHREAD_DATA to a folder that only this service uses.",
            folder,
        )
    paths = _ours(folder) if shared else _everything(folder)
    refused = [path for path in paths if not _restrict(path, gid)]
    if refused:
        _log.warning(
            "The permissions of %s%s cannot be restricted: other users of this machine may be able "
            "to read comments and addresses. Make the service's user the owner of the folder.",
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
    """Return whether the folder has other uses: it is a home, root, working or sticky directory."""
    resolved = folder.resolve()
    is_sticky = bool(resolved.stat().st_mode & stat.S_ISVTX)
    return is_sticky or resolved in {
        Path.home().resolve(),
        Path.cwd().resolve(),
        Path(resolved.anchor),
    }


def _restrict(path: Path, gid: int) -> bool:
    """Restrict a file or folder, and return whether it now has the intended permissions."""
    try:
        state = path.lstat()
        wanted = _intended_mode(state.st_mode, has_group=gid >= 0)
        if wanted is None:
            return True
        if gid not in {-1, state.st_gid}:
            os.chown(path, -1, gid, follow_symlinks=False)
        if stat.S_IMODE(state.st_mode) != wanted:
            path.chmod(wanted)
    except FileNotFoundError:  # Another process has removed the file
        return True
    except OSError:
        return False
    return True


def _intended_mode(mode: int, *, has_group: bool) -> int | None:
    """Return the intended mode of a file or folder, or None for a link or any other type."""
    if stat.S_ISDIR(mode):
        return _GROUP_FOLDER if has_group else _FOLDER
    if stat.S_ISREG(mode):
        return _GROUP_FILE if has_group else _FILE
    return None
