"""The folder for exports and imports, and the URLs of its files.

Owns the mapping of URLs to paths, and the errors raised for disk faults. `gs://BUCKET/PREFIX` means
`<folder>/BUCKET/PREFIX`, so code that names a bucket works unchanged.

No URL leads outside the folder: `..`, hidden names and symbolic links are refused.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import urllib.parse
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from datastore_emulator import errors
from datastore_emulator.import_export import export_files

_MAX_URL = 1024  # Maximum number of characters in a URL.
_MAX_PART = 200  # Maximum bytes of a name in a path; file systems allow 255.
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_IN_THE_WAY = frozenset({errno.ENOTDIR, errno.EEXIST, errno.EISDIR, errno.ELOOP})


@dataclass(frozen=True, slots=True)
class Export:
    """An export that can be imported."""

    contents: export_files.Contents
    entities: Path


class Folder:
    """The only folder that exports are written to and imported from.

    Args:
        root: The folder; the first export creates it. With None, every URL is refused.
    """

    def __init__(self, root: Path | None) -> None:
        self._root = None if root is None else Path(os.path.abspath(root))  # noqa: PTH100 - resolve() would follow links

    def place(self, url: str, field: str) -> Path:
        """Return the path that a URL names.

        Args:
            url: `gs://BUCKET/PREFIX` means `<folder>/BUCKET/PREFIX`; a path or `file:///PATH` is
                used unchanged and must lie in the folder.
            field: The name of the request field, for errors.

        Raises:
            errors.FailedPrecondition: No folder for exports is configured.
            errors.InvalidArgument: The URL has a different form, or leads outside the folder.
        """
        root = self._existing_root()
        if len(url) > _MAX_URL or not url.isprintable():
            raise errors.InvalidArgument(
                f"{field} must be a URL of at most {_MAX_URL} printable characters."
            )
        parts = self._parts(url, field, root)
        for part in parts:
            _check_part(part, field)
        path = root.joinpath(*parts)
        real = Path(os.path.realpath(root)).joinpath(*parts)
        if Path(os.path.realpath(path)) != real:
            raise errors.InvalidArgument(f"{field}: {url} leads through a symbolic link.")
        return path

    def _existing_root(self) -> Path:
        if self._root is None:
            raise errors.FailedPrecondition(
                "Exports are disabled because this emulator keeps its data in memory. Start it "
                "with --exports FOLDER."
            )
        return self._root

    def _parts(self, url: str, field: str, root: Path) -> tuple[str, ...]:
        """Return the names in a URL's path below the folder."""
        if url.startswith("gs://"):
            return tuple(url.removeprefix("gs://").removesuffix("/").split("/"))
        path = _path_of(url) if url.startswith("file://") else url
        if path.startswith("/") and ".." not in path.split("/"):
            for base in (root, Path(os.path.realpath(root))):
                with contextlib.suppress(ValueError):
                    return Path(path).relative_to(base).parts
        raise errors.InvalidArgument(
            f"{field}: {url!r} is not allowed. Use gs://BUCKET/PREFIX, which means "
            f"{root}/BUCKET/PREFIX, or file://{root}/PREFIX."
        )

    @contextlib.contextmanager
    def writing(self, parent: Path, name: str) -> Iterator[export_files.ExportDraft]:
        """Write an export, which appears in `parent` if the block succeeds.

        Raises:
            errors.ResourceExhausted: The disk is full.
            errors.Unavailable: Writing to the disk failed.
        """
        root = self._existing_root()
        with _translating():
            root.mkdir(mode=0o700, parents=True, exist_ok=True)
            draft, lock = export_files.begin_draft(root, name)
            try:
                yield draft
                export_files.sync_folder(draft.path)
                export_files.make_folder(parent, root)
                draft.path.rename(parent / name)
                export_files.sync_folder(parent)
            finally:
                shutil.rmtree(draft.path, ignore_errors=True)
                os.close(lock)

    def find(self, url: str, field: str) -> Export:
        """Find the export that belongs to the metadata file at a URL.

        Raises:
            errors.InvalidArgument: The URL does not name a metadata file, or the file is not valid
                metadata.
            errors.NotFound: The file does not exist.
        """
        if not url.endswith(export_files.SUFFIX):
            raise errors.InvalidArgument(
                f"{field} must be the output_url of an export. It ends with {export_files.SUFFIX}."
            )
        path = self.place(url, field)
        try:
            with export_files.reading(path) as file:
                contents = export_files.read_contents(file, url)
        except FileNotFoundError:
            raise errors.NotFound(f"{field}: no export exists at {url}.") from None
        except OSError as error:
            raise _refusal(error) from error
        return Export(contents, path.with_name(export_files.ENTITIES))


def _path_of(url: str) -> str:
    """Return the path of a file URL, or an empty string if the URL names a different machine."""
    try:
        split = urllib.parse.urlsplit(url)
    except ValueError:
        return ""
    is_here = split.netloc in ("", "localhost") and not (split.query or split.fragment)
    return urllib.parse.unquote(split.path) if is_here else ""


def _check_part(part: str, field: str) -> None:
    """Refuse an empty name, and any name that a file system or a reader could misinterpret."""
    if not part or part.startswith(".") or not part.isprintable() or "\\" in part:
        raise errors.InvalidArgument(
            f"{field}: {part!r} is not allowed in a path. Names must not be empty, begin with a "
            "dot, or contain a backslash or control characters."
        )
    if len(part.encode()) > _MAX_PART:
        raise errors.InvalidArgument(
            f"{field}: a name in the path has more than {_MAX_PART} bytes."
        )


@contextlib.contextmanager
def _translating() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise _refusal(error) from error


def _refusal(error: OSError) -> errors.DatastoreError:
    """Return the error to raise for a disk fault."""
    text = f"The export folder: {error.filename or ''}: {error.strerror or error}"
    if error.errno in _FULL:
        return errors.ResourceExhausted(text)
    if error.errno in _IN_THE_WAY:
        return errors.FailedPrecondition(text)
    return errors.Unavailable(text)
