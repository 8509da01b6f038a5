"""Describe a file to import, so that a second import of the same file is recognized."""

import hashlib
from pathlib import Path
from typing import NamedTuple


class ImportedFile(NamedTuple):
    """A file to import: its format, its name, its `digest`, and the number of its comments."""

    system: str
    name: str
    digest: str
    comments: int
    mapping: tuple[str, ...] = ()


def digest(path: Path) -> str:
    """Return a digest of a file's bytes; a second import of the same file has the same digest."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def untrusted_digest(path: Path) -> str:
    """Return the digest of an export of Flatthread that is not trusted.

    This digest differs from `digest`, because an import that trusts the file stores other values.
    """
    return f"untrusted-{digest(path)}"
