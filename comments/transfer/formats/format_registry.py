"""List the formats that can be imported, and recognize the format of a file."""

import codecs
import importlib
from pathlib import Path
from types import ModuleType

import msgspec

from comments import errors
from comments.domain.ids import imported_ids
from comments.transfer import import_source
from comments.transfer.parsing import source_files

_HEAD = 1 << 16  # Bytes at the start of a file that `recognize` reads.


class Format(msgspec.Struct, frozen=True):
    """A format. `unit` names what the line numbers in reports and errors count.

    A file in this format contains, at its beginning, all texts of at least one tuple in `marks`. If
    `marks` is empty, the format's module decides.
    """

    name: str
    title: str
    unit: str = "line"
    marks: tuple[tuple[bytes, ...], ...] = ()

    @property
    def read(self) -> import_source.Reader:
        """Return the function that reads an operator's file in this format."""
        reader: import_source.Reader = _module(self.name).read
        return reader

    @property
    def read_untrusted(self) -> import_source.Reader:
        """Return the function that reads an owner's upload in this format.

        The two functions differ only for exports of Flatthread, because no other format contains
        data that needs trust, such as ids of authors.
        """
        return _module(self.name).read_untrusted if self.name == imported_ids.OWN else self.read

    def recognizes(self, head: bytes) -> bool:
        """Return whether a file that begins with these bytes seems to have this format."""
        if not self.marks:
            return bool(_module(self.name).recognizes(head))
        return any(all(mark in head for mark in group) for group in self.marks)


# The order matters: `recognize` returns the first format that recognizes a file.
FORMATS = (
    Format(
        "artalk", "Artalk JSON (Artrans)", "comment", ((b'"page_key"', b'"content"', b'"nick"'),)
    ),
    Format(
        "comentario",
        "Comentario JSON",
        "comment",
        ((b'"pages"', b'"domainId"'), (b'"pageId"', b'"createdTime"')),
    ),
    Format("commento", "Commento JSON", "comment", ((b'"commentHex"',), (b'"commenterHex"',))),
    Format("disqus", "Disqus XML", marks=((b"<disqus",),)),
    Format(imported_ids.OWN, "Flatthread file (JSON lines)"),
    Format("isso", "Isso's database", "comment", ((b"SQLite format 3\x00",),)),
    Format("remark42", "remark42's backup"),
    Format("twikoo", "Twikoo JSON", "comment", ((b'"_id"', b'"nick"', b'"comment"'),)),
    Format("valine", "Valine JSON", "comment"),
    Format("waline", "Waline JSON", "comment"),
    Format("wordpress", "WordPress export (WXR)", marks=((b"<rss", b"wordpress.org/export/"),)),
    # This format comes last, because files of other formats can have the same field names.
    Format("generic", "JSON lines or CSV"),
)
NAMES = tuple(entry.name for entry in FORMATS)


def get(name: str) -> Format:
    """Return the format with this name, one of `NAMES`."""
    return next(entry for entry in FORMATS if entry.name == name)


def recognize(path: Path) -> Format:
    """Return the format of a file, judged by its first bytes.

    Raises:
        errors.BadImport: the file cannot be read, or no format recognizes it.
    """
    with source_files.open_file(path) as file:
        head = _as_utf_8(file.read(_HEAD))
    file_format = next((entry for entry in FORMATS if entry.recognizes(head)), None)
    if file_format is None:
        raise errors.UnknownFormat(
            str(path),
            None,
            f"the format is not recognized. Name the format before the file: {', '.join(NAMES)}",
        )
    return file_format


def _as_utf_8(head: bytes) -> bytes:
    """Convert the beginning of a UTF-16 file, so that formats need not handle this encoding."""
    if not head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return head
    return head.decode("utf-16", errors="replace").encode(errors="replace")


def _module(name: str) -> ModuleType:
    # Modules are imported only when needed, because each format needs its own libraries.
    return importlib.import_module(f"comments.transfer.formats.{name}")
