"""Read the XML export of Disqus.

    <disqus xmlns="http://disqus.com" xmlns:dsq="http://disqus.com/disqus-internals">
      <thread dsq:id="1"> <id/> <link/> <title/> <isClosed/> <isDeleted/> </thread>
      <post dsq:id="2">
        <message/> <createdAt/> <isDeleted/> <isSpam/>
        <author> <name/> <email/> </author> <thread dsq:id="1"/> <parent dsq:id="2"/>
      </post>
    </disqus>

Threads usually come before posts and parents before replies, but the import does not rely on that.
A deleted post is imported as retracted even if it is also spam, because the person who deleted it
wanted the text removed.
"""

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from comments.domain.records import Status
from comments.transfer import import_source
from comments.transfer.parsing import record_fields, xml_reader

SYSTEM = "disqus"

_INTERNALS = "http://disqus.com/disqus-internals"
_NAMESPACES = ("http://disqus.com ", f"{_INTERNALS} ")
_THREAD = "disqus/thread"
_POST = "disqus/post"


def read(path: Path) -> Iterator[import_source.Item]:
    """Yield the threads and posts in an export."""
    for element in xml_reader.read(path, _SHAPE):
        if isinstance(element, import_source.Corrected):
            yield element
        elif element.name == _THREAD:
            yield _thread(path, element)
        else:
            yield from _comment(path, element)


def _short_name(qualified: str) -> str:
    for namespace in _NAMESPACES:
        if qualified.startswith(namespace):
            return qualified.removeprefix(namespace)
    return ""


_SHAPE = xml_reader.Shape(
    title="a Disqus export",
    root="disqus",
    name=_short_name,
    prefixes={"dsq": _INTERNALS},
    records={
        _THREAD: frozenset({"@id", "id", "link", "title", "isClosed", "isDeleted"}),
        _POST: frozenset({"@id", "message", "createdAt", "isDeleted", "isSpam", "ipAddress"})
        | frozenset({"author/name", "author/email", "author/username", "thread@id", "parent@id"}),
    },
)


def _thread(path: Path, element: xml_reader.Element) -> import_source.SourceThread:
    return import_source.SourceThread(
        key=import_source.checked_id(path, element.line, element.text("@id")),
        line=element.line,
        link=element.text("link"),
        id=element.text("id"),
        title=element.text("title"),
        closed=element.text("isClosed") == "true",
        deleted=element.text("isDeleted") == "true",
    )


def _comment(path: Path, element: xml_reader.Element) -> Iterator[import_source.Item]:
    created = element.text("createdAt")
    yield import_source.SourceComment(
        system=SYSTEM,
        id=import_source.checked_id(path, element.line, element.text("@id")),
        line=element.line,
        thread=import_source.checked_id(path, element.line, element.text("thread@id")),
        parent=element.text("parent@id") or None,
        status=_status(element),
        created=import_source.moment(path, element.line, created),
        name=element.text("author/name"),
        email=element.text("author/email"),
        account=element.text("author/username"),
        body=element.text("message"),
    )
    if element.text("ipAddress"):
        yield import_source.LeftOut(element.line, record_fields.ADDRESSES)
    if datetime.fromisoformat(created).tzinfo is None:
        yield import_source.Corrected(element.line, record_fields.NO_ZONE)


def _status(element: xml_reader.Element) -> Status:
    if element.text("isDeleted") == "true":
        return Status.RETRACTED
    return Status.SPAM if element.text("isSpam") == "true" else Status.APPROVED
