"""Discussions for tests: a nested literal is posted comment by comment, in the order written."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from comments import config, datastore, floor, posting, records, tree

START = datetime(2026, 1, 2, 3, 4, 5, 678901, UTC)
SETTINGS = config.Settings(secret="a secret of the tests")
Nested = Mapping[str, Any]
TREE: Nested = {
    "1": {"1.1": {"1.1.1": {}, "1.1.2": {}}, "1.2": {}},
    "2": {"2.1": {}},
    "3": {},
}
# ... and the same in reading order.
ORDER = ["1", "1.1", "1.1.1", "1.1.2", "1.2", "2", "2.1", "3"]


def filing(site: records.Site, *categories: str) -> records.Site:
    """The site, with categories that its pages may name."""
    return msgspec.structs.replace(site, categories=categories)


def name_of(site: records.Site, thread: str = "page") -> records.ThreadName:
    return records.ThreadName(site.id, thread)


def post(
    site: records.Site,
    body: str,
    parent: str | None = None,
    *,
    settings: config.Settings = SETTINGS,
    now: datetime = START,
    thread: str = "page",
    **more: Any,
) -> records.Comment:
    """Post a comment whose text, and whose author's name, is `body`."""
    author = more.pop("author", records.Author(name=f"author of {body}", id=f"g:{body}"))
    draft = posting.Draft(site, thread, parent, author, body, **more)
    return posting.post(draft, settings=settings, now=now).comment


def grow(
    site: records.Site,
    nested: Nested,
    *,
    settings: config.Settings = SETTINGS,
    thread: str = "page",
    **more: Any,
) -> dict[str, records.Comment]:
    """Post a whole tree, a minute apart; the comments by their text."""
    grown: dict[str, records.Comment] = {}

    def below(children: Nested, parent: str | None) -> None:
        for body, replies in children.items():
            now = START + timedelta(minutes=len(grown))
            grown[body] = post(
                site, body, parent, settings=settings, now=now, thread=thread, **more
            )
            below(replies, grown[body].id)

    below(nested, None)
    return grown


def texts(rows: Any) -> list[str]:
    """The texts of comments; a tombstone shows as "-"."""
    return ["-" if row.is_tombstone else row.body for row in rows]


def listed(site: records.Site, thread: str = "page") -> list[str]:
    """What a reader of the whole thread sees."""
    return texts(floor.thread(name_of(site, thread)))


def walk(rows: Any) -> list[str]:
    """The ids of a thread by following parent links, siblings by number: the oracle of order."""
    children: dict[str | None, list[records.Comment]] = {}
    for row in rows:
        children.setdefault(row.parent, []).append(row)
    order: list[str] = []
    waiting = sorted(children.get(None, []), key=lambda row: -row.number)
    while waiting:
        row = waiting.pop()
        order.append(row.id)
        waiting += sorted(children.get(row.id, []), key=lambda row: -row.number)
    return order


def store_imported(name: records.ThreadName, *nodes: records.ImportedComment) -> int:
    """Place imported comments in one transaction; how many were not there yet."""

    def body() -> int:
        imported = tree.append_imported(
            SETTINGS.scheme,
            name,
            nodes,
            title="",
            url="",
            state=records.ThreadState.OPEN,
            now=START,
        )
        datastore.apply(*imported.writes)
        return imported.added

    return datastore.transaction(body)
