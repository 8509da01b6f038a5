"""Find the sample file of each import format, and what its import has to store.

To add a format to the tests that all formats share (`test_every_format`), write a module in
`samples/` with the name of the format:

1. `SANE` is a file as the other system writes it, with what its import stores (`Sample`). Write the
   expectation by hand; do not compute it with code of the importer. The file has at least six
   comments in two threads: nested replies, an edit, votes, a pin, pending, spam and deleted
   comments, as far as the format has these; one author with two comments; Markdown, HTML or plain
   text with a special character. All comments belong to pages of `https://garden.example`.
2. `CROOKED` has further files by name, with faults that the import corrects or reports. `says`
   lists lines of the report.
3. `REFUSED` has files that the import refuses, each with a part of the error message that names
   the place and the remedy.

Keep the files below a few kilobytes, because they are imported in many damaged forms.
"""

import dataclasses
import importlib
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import NamedTuple, Protocol, cast

from comments.domain.records import Status, ThreadState


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """A stored comment. `id` and `parent` are ids of the other system.

    Comments of the same `person` have the same author id; the default is the name. Retracted
    comments have no text, no name and no person.
    """

    thread: str
    id: str
    parent: str | None = None
    status: Status = Status.APPROVED
    created: datetime
    name: str = ""
    person: str = ""
    website: str = ""
    text: str = ""
    html: str = ""
    edited: datetime | None = None
    up: int = 0
    down: int = 0
    pinned: bool = False


class ExpectedThread(NamedTuple):
    """A stored thread."""

    title: str = ""
    state: ThreadState = ThreadState.OPEN


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """A file, and what its import stores.

    `comments` are sorted by thread, then in reading order. `addresses` are the mail addresses of
    people, in lower case, and are compared for `SANE` only. `says` are lines of the report.
    """

    data: bytes
    comments: tuple[Expected, ...]
    threads: Mapping[str, ExpectedThread]
    addresses: Mapping[str, str] = dataclasses.field(default_factory=dict)
    says: tuple[str, ...] = ()


class FormatSamples(Protocol):
    """The samples of one format."""

    SANE: Sample
    CROOKED: Mapping[str, Sample]
    REFUSED: Mapping[str, tuple[bytes, str]]


def of(name: str) -> FormatSamples:
    """Return the samples of a format."""
    return cast("FormatSamples", importlib.import_module(f"tests.support.importing.samples.{name}"))


def at(*parts: int) -> datetime:
    """Return a time in UTC."""
    return datetime(*parts, tzinfo=UTC)  # type: ignore[arg-type, misc]
