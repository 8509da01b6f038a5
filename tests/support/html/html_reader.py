"""Parse our HTML as browsers do: elements, lists, links and data blocks."""

import html.parser
import json
from typing import Any
from urllib.parse import parse_qs, urlsplit

LIST = "ft-list"
COMMENT = "comment-"
VOID = {"base", "br", "hr", "img", "input", "link", "meta"}


class Elements(html.parser.HTMLParser):
    """The elements of an HTML document or fragment, with their attributes."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.feed(source)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))


class Document(html.parser.HTMLParser):
    """A parsed document. `depths` counts the nested comment lists around each comment."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.depths: dict[str, int] = {}
        self.data: list[str] = []
        self.text = ""
        self._open: list[tuple[str, bool]] = []
        self.feed(source)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        self.tags.append(tag)
        self.elements.append((tag, values))
        identity = values.get("id") or ""
        if identity.startswith(COMMENT):
            self.depths[identity.removeprefix(COMMENT)] = sum(flag for _, flag in self._open) - 1
        if tag not in VOID:
            self._open.append((tag, values.get("class") == LIST))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop()[0] == tag, "the closed element is not the innermost one"

    def handle_data(self, data: str) -> None:
        if self._open and self._open[-1][0] == "script":
            self.data.append(data)
        else:
            self.text += data

    @property
    def ids(self) -> list[str]:
        """The comments' ids in document order."""
        return list(self.depths)

    @property
    def linked_data(self) -> Any:
        (block,) = self.data
        return json.loads(block)

    def links(self, rel: str, tag: str = "link") -> list[str]:
        """Return the link targets of all elements with this `rel` attribute."""
        return [
            values.get("href") or ""
            for name, values in self.elements
            if name == tag and values.get("rel") == rel
        ]

    @property
    def next(self) -> dict[str, str]:
        """The next page's query string; empty on the last page."""
        found = self.links("next", "a")
        return {} if not found else {k: v for k, (v,) in parse_qs(urlsplit(found[0]).query).items()}
