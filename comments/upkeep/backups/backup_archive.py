"""The file of a backup: a compressed tar archive with a description and the data file.

    NAME.tar.gz
        manifest.json   `Manifest`, as JSON
        flatthread.db   the embedded engine's data file

`tar -xzf NAME.tar.gz flatthread.db` recovers the data file without this program. gzip's checksum
covers the whole archive, and the manifest contains the SHA-256 digest of the data file, so a
truncated or changed archive is refused.

Invariant: The archive does not contain the secret, only a keyed digest by which the secret is
recognized (`secret_mark`)
(test_backup_archive.py::test_the_secret_is_recognized_but_not_contained).
"""

import contextlib
import gzip
import hashlib
import io
import os
import tarfile
import zlib
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import IO, NamedTuple

import msgspec

from comments import errors
from comments.domain import decoders
from comments.domain.crypto import keyed_hashes

FORMAT = 1
_MANIFEST, _DATA = "manifest.json", "flatthread.db"
_LARGEST_MANIFEST = 1 << 20  # Maximum size in bytes.
_CHUNK = 1 << 20  # Bytes per read.
_LEVEL = 1  # Level 2 and above save a tenth of the space but take several times as long.
_SQLITE = b"SQLite format 3\0"
_DAMAGED = (EOFError, zlib.error, gzip.BadGzipFile, tarfile.TarError)


class Manifest(msgspec.Struct, frozen=True):
    """The description of a backup.

    `created` is the time when the backup was started. `secret` is the mark of the service's secret.
    `size` and `sha256` describe the data file. `kinds` contains the number of entities of each
    kind.
    """

    format: int
    created: datetime
    secret: str
    size: int
    sha256: str
    kinds: dict[str, int]


class FileDigest(NamedTuple):
    """The size in bytes and the SHA-256 digest of a file."""

    size: int
    sha256: str


def secret_mark(secret: str) -> str:
    """Return a mark by which a restore recognizes the secret that the backup was made with."""
    return keyed_hashes.text(keyed_hashes.keyed_digest(secret, "backup"))


def has_secret(manifest: Manifest, secret: str) -> bool:
    """Return whether the backup was made with this secret or with the one before it."""
    return keyed_hashes.is_one(manifest.secret, secret, "backup")


def digest(path: Path) -> FileDigest:
    """Read a file and return its size and digest."""
    checksum, size = hashlib.sha256(), 0
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            checksum.update(chunk)
            size += len(chunk)
    return FileDigest(size, checksum.hexdigest())


def pack(data: Path, manifest: Manifest, target: Path) -> None:
    """Write an archive to a new file and sync it.

    Raises:
        OSError: the file exists, or cannot be written.
    """
    with target.open("xb") as raw:
        with (
            gzip.GzipFile("", "wb", _LEVEL, raw, mtime=0) as packed,
            tarfile.open(fileobj=packed, mode="w|", format=tarfile.PAX_FORMAT) as archive,
        ):
            described = msgspec.json.encode(manifest)
            archive.addfile(_member(_MANIFEST, len(described), manifest), io.BytesIO(described))
            with data.open("rb") as file:
                archive.addfile(_member(_DATA, manifest.size, manifest), file)
        raw.flush()
        os.fsync(raw.fileno())


def _member(name: str, size: int, manifest: Manifest) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.size, member.mode = size, 0o600
    member.mtime = int(manifest.created.timestamp())
    return member


def unpack(path: Path, target: Path | None) -> Manifest:
    """Check an archive. If `target` is not None, write the archive's data file to this new file.

    Raises:
        errors.BackupFailed: the archive is damaged or not a backup of this program.
        OSError: a file cannot be read or written.
    """
    with path.open("rb") as raw:
        is_data_file = raw.read(len(_SQLITE)) == _SQLITE
        raw.seek(0)
        if is_data_file:
            raise errors.BackupFailed(
                f"{path} is a plain data file, not a backup made by `backup`. Use "
                "`python -m emulator restore` for it (docs/backups.md)."
            )
        try:
            with gzip.GzipFile(fileobj=raw) as packed:
                manifest = _unpack_members(path, packed, target)
                while packed.read(_CHUNK):  # At the end, gzip compares its checksum
                    pass
        except _DAMAGED as error:
            raise errors.BackupFailed(
                f"{path} is damaged or not a backup: {error}. Nothing was "
                "changed. Use another backup."
            ) from error
    return manifest


def _unpack_members(path: Path, packed: gzip.GzipFile, target: Path | None) -> Manifest:
    with tarfile.open(fileobj=packed, mode="r|") as archive:
        members = iter(archive)
        with _next_member(_MANIFEST, members, archive) as file:
            manifest = _decode_manifest(path, file.read(_LARGEST_MANIFEST))
        with _next_member(_DATA, members, archive) as file, _open_target(target) as copy:
            checksum, size = hashlib.sha256(), 0
            while chunk := file.read(_CHUNK):
                checksum.update(chunk)
                size += len(chunk)
                copy.write(chunk)
        if (size, checksum.hexdigest()) != (manifest.size, manifest.sha256):
            raise tarfile.ReadError("the data file does not match its checksum")
        if next(members, None) is not None:
            raise tarfile.ReadError("the archive contains an unknown file")
    return manifest


@contextlib.contextmanager
def _next_member(
    name: str, members: Iterator[tarfile.TarInfo], archive: tarfile.TarFile
) -> Iterator[IO[bytes]]:
    member = next(members, None)
    file = None if member is None or member.name != name else archive.extractfile(member)
    if file is None:
        raise tarfile.ReadError(f"the archive lacks {name}")
    with file:
        yield file


@contextlib.contextmanager
def _open_target(target: Path | None) -> Iterator[IO[bytes]]:
    with open(os.devnull, "wb") if target is None else target.open("xb") as file:  # noqa: PTH123
        yield file


def _decode_manifest(path: Path, described: bytes) -> Manifest:
    try:
        header = _FORMATTED.decode(described)
        if header.format > FORMAT:
            raise errors.BackupFailed(
                f"{path} has format {header.format}, but this release reads formats 1 to {FORMAT}. "
                "Restore it with a newer release."
            )
        return _MANIFESTS.decode(described)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise tarfile.ReadError(f"{_MANIFEST} is not valid: {error}") from error


class _Formatted(msgspec.Struct, frozen=True):
    format: int


_FORMATTED = decoders.json(_Formatted)
_MANIFESTS = decoders.json(Manifest)
