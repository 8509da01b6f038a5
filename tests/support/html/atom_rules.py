"""Check a feed against the rules of RFC 4287 and, for `in-reply-to`, of RFC 4685.

No validator of Atom is on PyPI, npm or in Debian, so the rules are written here as tables, from the
RFCs. One rule is stricter than RFC 4287: each address must be absolute.
"""

import collections
import re
import xml.etree.ElementTree as ET
from collections.abc import Mapping

ATOM = "{http://www.w3.org/2005/Atom}"
THREADING = "{http://purl.org/syndication/thread/1.0}"
_XML = "{http://www.w3.org/XML/1998/namespace}"
# For each element that contains elements: the least and the largest number of each child.
_ANY = (0, 1_000)
_PERSON = {"name": (1, 1), "uri": (0, 1), "email": (0, 1)}
_BOTH = {
    "author": _ANY, "category": _ANY, "contributor": _ANY, "id": (1, 1), "link": _ANY,
    "rights": (0, 1), "title": (1, 1), "updated": (1, 1),
}  # fmt: skip
_ENTRY = _BOTH | {
    "author": (1, 1_000),
    "content": (0, 1),
    "published": (0, 1),
    "source": (0, 1),
    "summary": (0, 1),
}
_FEED = _BOTH | {
    "entry": _ANY, "generator": (0, 1), "icon": (0, 1), "logo": (0, 1), "subtitle": (0, 1),
}  # fmt: skip
_CHILDREN = {"feed": _FEED, "entry": _ENTRY, "author": _PERSON, "contributor": _PERSON}
_ATTRIBUTES = {
    "link": {"href", "rel", "type", "hreflang", "title", "length"},
    "title": {"type"},
    "content": {"type", "src"},
}
_DATES = {"updated", "published"}
_ADDRESSES = {"id", "uri"}
_DATE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")
_ABSOLUTE = re.compile(r"[a-z][a-z0-9+.-]*:([^\s<>\"{}|\\^`%]|%[0-9A-Fa-f]{2})+")
_MEDIA_TYPE = re.compile(r"[\w.+-]+/[\w.+-]+")


def problems(raw: bytes) -> list[str]:
    """Return what is wrong with a feed."""
    root = ET.fromstring(raw)  # noqa: S314 - our own XML
    found = [] if root.tag == f"{ATOM}feed" else [f"the root is {root.tag}"]
    for element in root.iter():
        found += [f"{element.tag}: {each}" for each in _element(element)]
    entries = root.findall(f"{ATOM}entry")
    versions = [(each.findtext(f"{ATOM}id"), each.findtext(f"{ATOM}updated")) for each in entries]
    if len(set(versions)) < len(versions):
        found.append("two entries have the same id and the same time")
    return found


def links(raw: bytes) -> dict[str, set[str]]:
    """Return the addresses of a feed's links by their `rel`."""
    found: dict[str, set[str]] = collections.defaultdict(set)
    for link in ET.fromstring(raw).iter(f"{ATOM}link"):  # noqa: S314 - our own XML
        found[link.get("rel", "alternate")].add(link.get("href", ""))
    return found


def _element(element: ET.Element) -> list[str]:
    if element.tag == f"{THREADING}in-reply-to":
        return _attributes(element.attrib, {"ref"}, {"href", "type", "source"})
    name = element.tag.removeprefix(ATOM)
    if name == element.tag:
        return ["the RFCs do not define this element"]
    own = {each: value for each, value in element.attrib.items() if not each.startswith(_XML)}
    needed = {"href"} if name == "link" else set()
    return [
        *_attributes(own, needed, _ATTRIBUTES.get(name, set())),
        *_children(element, _CHILDREN.get(name, {})),
        *_text(name, element.text or ""),
        *(_links(element) if name in {"feed", "entry"} else ()),
    ]


def _attributes(given: Mapping[str, str], needed: set[str], allowed: set[str]) -> list[str]:
    found = [f"the attribute {each} is missing" for each in needed - given.keys()]
    found += [f"the attribute {each} is not allowed" for each in given.keys() - needed - allowed]
    for name in given.keys() & {"href", "ref", "src", "source"}:
        if not _ABSOLUTE.fullmatch(given[name]):
            found.append(f"{name} is not an absolute address: {given[name]}")
    if "type" in given and given["type"] not in {"text", "html"}:
        found += [] if _MEDIA_TYPE.fullmatch(given["type"]) else ["the type is not a media type"]
    return found


def _children(element: ET.Element, counts: Mapping[str, tuple[int, int]]) -> list[str]:
    names = [child.tag.removeprefix(ATOM) for child in element if child.tag.startswith(ATOM)]
    found = [f"{each} is not allowed here" for each in {*names} - counts.keys()]
    for name, (least, most) in counts.items():
        if not least <= names.count(name) <= most:
            found.append(f"{name} occurs {names.count(name)} times")
    return found


def _text(name: str, text: str) -> list[str]:
    if name in _DATES and not _DATE.fullmatch(text):
        return [f"not a time: {text}"]
    if name in _ADDRESSES and not _ABSOLUTE.fullmatch(text):
        return [f"not an absolute address: {text}"]
    if name == "name" and not text.strip():
        return ["the name is empty"]
    if name in _CHILDREN and text.strip():
        return ["text between elements"]
    return []


def _links(element: ET.Element) -> list[str]:
    alternates = [
        (each.get("type"), each.get("hreflang"))
        for each in element.findall(f"{ATOM}link")
        if each.get("rel", "alternate") == "alternate"
    ]
    found = ["two alternate links of one type"] if len({*alternates}) < len(alternates) else []
    is_entry = element.tag == f"{ATOM}entry"
    if is_entry and not alternates and element.find(f"{ATOM}content") is None:
        found.append("the entry has neither an alternate link nor content")
    return found
