"""Read exports of Disqus and WordPress independently of the importer, to compare the two."""

import html
import re
from collections import defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit
from xml.etree import ElementTree as ET

from comments.domain.records import Status
from tests.support.importing.sample_files import Expected

_DISQUS, _IDS = "{http://disqus.com}", "{http://disqus.com/disqus-internals}"
_TAG = re.compile(r"<[^<>]*>")


def parsed(path: Path) -> ET.Element:
    """Parse a file; a missing declaration of `atom:`, as in old exports, is added."""
    data = path.read_bytes()
    if b"<atom:" in data and b"xmlns:atom" not in data:
        data = data.replace(b"<rss ", b'<rss xmlns:atom="urn:atom" ', 1)
    return ET.fromstring(data)  # noqa: S314 - the parser of Python 3.11 limits entities


def disqus(path: Path) -> dict[str, Expected]:
    """Return the posts of an export of Disqus whose thread is in the file, by id."""
    root = parsed(path)
    links = {
        each.get(f"{_IDS}id"): each.findtext(f"{_DISQUS}link", "")
        for each in root.findall(f"{_DISQUS}thread")
    }
    found = {}
    for post in root.findall(f"{_DISQUS}post"):
        thread, parent = post.find(f"{_DISQUS}thread"), post.find(f"{_DISQUS}parent")
        link = links.get(thread.get(f"{_IDS}id")) if thread is not None else None
        if link is None:
            continue
        is_gone = post.findtext(f"{_DISQUS}isDeleted") == "true"
        is_spam = post.findtext(f"{_DISQUS}isSpam") == "true"
        name = post.findtext(f"{_DISQUS}author/{_DISQUS}name", "")
        created = post.findtext(f"{_DISQUS}createdAt", "")
        found[post.get(f"{_IDS}id", "")] = Expected(
            id=post.get(f"{_IDS}id", ""),
            thread=_page(link),
            parent=parent.get(f"{_IDS}id") if parent is not None else None,
            status=Status.RETRACTED if is_gone else Status.SPAM if is_spam else Status.APPROVED,
            created=datetime.strptime(created, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC),
            name="" if is_gone else " ".join(name.split()) or "Guest",
            text="" if is_gone else words(post.findtext(f"{_DISQUS}message", "")),
        )
    return found


def wordpress(path: Path) -> dict[str, Expected]:
    """Return the comments of an export of WordPress, by id, without pingbacks and doubled ids."""
    root = parsed(path)
    found: dict[str, Expected] = {}
    for item in root.iter("item"):
        fields = _fields(item)
        is_public = fields.get("status", "") in {"publish", "inherit", ""}
        is_public = is_public and not fields.get("post_password")
        for element in item:
            if not element.tag.endswith("}comment"):
                continue
            given = _fields(element)
            if given.get("comment_type", "") not in {"", "comment"}:
                continue
            status = {"1": Status.APPROVED, "spam": Status.SPAM, "trash": Status.REJECTED}.get(
                given.get("comment_approved", ""), Status.PENDING
            )
            if status is Status.APPROVED and not is_public:
                status = Status.PENDING
            found.setdefault(
                given["comment_id"],
                Expected(
                    id=given["comment_id"],
                    thread=_page(fields["link"]),
                    parent=given.get("comment_parent", "0"),
                    status=status,
                    created=datetime.strptime(
                        given["comment_date_gmt"], "%Y-%m-%d %H:%M:%S"
                    ).replace(tzinfo=UTC),
                    name=" ".join(html.unescape(given.get("comment_author", "")).split())
                    or "Guest",
                    text=words(given.get("comment_content", "")),
                ),
            )
    return found


def _fields(element: ET.Element) -> dict[str, str]:
    """Return the texts of an element's children by local name."""
    fields: dict[str, str] = {}
    for child in element:
        fields.setdefault(child.tag.rpartition("}")[2], (child.text or "").strip())
    return fields


def _page(link: str) -> str:
    parts = urlsplit(link)
    path = quote(unquote(parts.path), safe="/-._~!$&'()*+,;=:@").rstrip("/")
    return f"{parts.netloc}{path or '/'}"


def words(text: str) -> str:
    """Return a text without tags and blanks, which are not the same in both systems."""
    return "".join(html.unescape(_TAG.sub("", text)).split())


def in_order(found: dict[str, Expected], levels: int) -> Iterator[Expected]:
    """Yield the comments thread by thread, in reading order, by a recursive walk.

    A reply to a missing comment is a root, and one below the deepest level is a sibling.
    """
    for each in found.values():
        above = found.get(each.parent or "")
        if above is None or above.thread != each.thread:
            object.__setattr__(each, "parent", None)
    below: dict[tuple[str, str | None], list[Expected]] = defaultdict(list)
    for each in found.values():
        below[each.thread, _place(found, each, levels)[0]].append(each)

    def walk(thread: str, parent: str | None) -> Iterator[Expected]:
        for each in sorted(below[thread, parent], key=lambda each: (each.created, int(each.id))):
            yield each
            yield from walk(thread, each.id)

    for thread in sorted({each.thread for each in found.values()}):
        yield from walk(thread, None)


def _place(found: dict[str, Expected], each: Expected, levels: int) -> tuple[str | None, int]:
    """Return the parent in the tree, and the level."""
    if each.parent is None:
        return None, 0
    above, level = _place(found, found[each.parent], levels)
    return (above, level) if level == levels - 1 else (each.parent, level + 1)
