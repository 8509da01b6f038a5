"""The two files of an export, and the steps that write them to disk.

Owns the file format, which docs/reference.md describes for users:

    <name>.overall_export_metadata    a description of the content, as JSON
    entities.jsonl                    the entities, one per line (`json_lines`)

An export gets its final name only after both files are on disk. Until then, it is a hidden folder
that its writer keeps locked. If the writer dies, the next export removes the folder. Only the owner
can access the files and folders.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import json
import os
import re
import shutil
import stat
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, BinaryIO

from datastore_emulator import errors

SUFFIX = ".overall_export_metadata"
ENTITIES = "entities.jsonl"
_FORMAT = "emulator-export"
_VERSION = 1
_MAX_METADATA = 1024 * 1024  # Maximum size in bytes
_PARTIAL = re.compile(r"\.[\w-]+\.partial")


@dataclass(frozen=True, slots=True)
class Contents:
    """The content of an export. An empty list of kinds or namespaces means all of them."""

    project: str
    kinds: tuple[str, ...]
    namespaces: tuple[str, ...]
    read_time: str
    entities: int
    bytes: int
    sha256: str


class Digest:
    """The size and SHA-256 of the lines added so far."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256()
        self.entities = 0
        self.bytes = 0

    def add(self, lines: bytes) -> int:
        """Add complete lines and return their number."""
        number = lines.count(b"\n")
        self._hash.update(lines)
        self.entities += number
        self.bytes += len(lines)
        return number

    @property
    def sha256(self) -> str:
        """The SHA-256 of the lines added so far."""
        return self._hash.hexdigest()


@dataclass(frozen=True, slots=True)
class ExportDraft:
    """An export in progress."""

    path: Path
    name: str

    @contextlib.contextmanager
    def entities(self) -> Iterator[BinaryIO]:
        """Open the file of entity lines; it is on disk when the block ends."""
        with _writing(self.path / ENTITIES) as file:
            yield file

    def describe(self, contents: Contents) -> None:
        document = {"format": _FORMAT, "version": _VERSION, **asdict(contents)}
        with _writing(self.path / f"{self.name}{SUFFIX}") as file:
            file.write(json.dumps(document, indent=2).encode() + b"\n")


@contextlib.contextmanager
def reading(path: Path) -> Iterator[BinaryIO]:
    """Open a regular file without following symbolic links.

    Raises:
        OSError: The file does not exist, or is not a regular file.
    """
    # A pipe opened without O_NONBLOCK would block the request forever.
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EISDIR, "not a regular file", str(path))
        yield file


@contextlib.contextmanager
def _writing(path: Path) -> Iterator[BinaryIO]:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        yield file
        file.flush()
        os.fsync(descriptor)


def begin_draft(root: Path, name: str) -> tuple[ExportDraft, int]:
    """Create a hidden folder that stays locked while its writer is alive."""
    path = root / f".{name}.partial"
    turn = os.open(root, os.O_RDONLY)
    try:
        fcntl.flock(turn, fcntl.LOCK_EX)
        _remove_abandoned(root)
        path.mkdir(mode=0o700)
        lock = os.open(path, os.O_RDONLY)
        fcntl.flock(lock, fcntl.LOCK_EX)
    finally:
        os.close(turn)
    return ExportDraft(path, name), lock


def _remove_abandoned(root: Path) -> None:
    """Remove the folders of writers that have died."""
    for path in root.iterdir():
        if not _PARTIAL.fullmatch(path.name) or path.is_symlink():
            continue
        lock = os.open(path, os.O_RDONLY)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(path)
        except BlockingIOError:
            pass
        finally:
            os.close(lock)


def make_folder(folder: Path, root: Path) -> None:
    """Create a folder below the root, including missing parents, and sync it to disk."""
    path = root
    for part in folder.relative_to(root).parts:
        parent, path = path, path / part
        path.mkdir(mode=0o700, exist_ok=True)
        sync_folder(parent)


def sync_folder(folder: Path) -> None:
    """Sync the file names in a folder to disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def read_contents(content: BinaryIO, url: str) -> Contents:
    """Read the metadata file of an export and return the export's contents.

    Raises:
        errors.InvalidArgument: The file is not an export's metadata.
    """
    try:
        return _contents(json.loads(content.read(_MAX_METADATA)))
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise errors.InvalidArgument(
            f"{url} is not the metadata of an export: {error!r}"
        ) from error


def _contents(document: object) -> Contents:
    if not isinstance(document, dict) or document.pop("format", None) != _FORMAT:
        raise ValueError(f'its format is not "{_FORMAT}"')
    fields: dict[str, Any] = document
    version = fields.pop("version", None)
    if version != _VERSION:
        raise ValueError(f"version {version!r} is not supported, only {_VERSION}")
    for name in ("kinds", "namespaces"):
        if not isinstance(fields[name], list) or not all(isinstance(x, str) for x in fields[name]):
            raise TypeError(f"{name} is not a list of strings")
        fields[name] = tuple(fields[name])
    wanted = {"project": str, "read_time": str, "entities": int, "bytes": int, "sha256": str}
    for name, kind in wanted.items():
        if not isinstance(fields[name], kind):
            raise TypeError(f"{name} is not of type {kind.__name__}")
    return Contents(**fields)
