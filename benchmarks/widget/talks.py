"""Sample comments: two written conversations for pictures, and a long generated one to measure."""

import dataclasses
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec

from benchmarks.threads import conversations, shapes

LENGTH = 315  # The number of comments in the generated conversation.


@dataclasses.dataclass(frozen=True, slots=True)
class Line:
    """A comment. `parent` is the position of the comment that it answers, in the same list."""

    parent: int | None
    name: str
    body: str
    created: datetime
    up: int = 0
    down: int = 0
    is_staff: bool = False
    is_pinned: bool = False


_TALKS = msgspec.json.decode(Path(__file__).with_name("talks.json").read_bytes())


def article(language: str) -> str:
    """Return the HTML of the article above a written conversation."""
    talk = _TALKS[language]
    return "\n".join([f"<h1>{talk['title']}</h1>", *(f"<p>{each}</p>" for each in talk["article"])])


def written(language: str, now: datetime) -> list[Line]:
    """Return a written conversation, one of whose comments is pinned."""
    return [
        Line(
            each["parent"],
            each["name"],
            each["body"],
            now - timedelta(minutes=each["minutes"]),
            up=max(each["votes"], 0),
            down=max(-each["votes"], 0),
            is_staff=each.get("staff", False),
            is_pinned=each.get("pinned", False),
        )
        for each in _TALKS[language]["comments"]
    ]


def generated() -> list[Line]:
    """Return a long conversation, with the shape and the lengths of real ones."""
    shape = shapes.grown(LENGTH)
    said = conversations.thread(shape)
    return [
        Line(
            parent,
            each.author_name,
            each.body,
            datetime.fromtimestamp(each.created.timestamp(), UTC),
        )
        for parent, each in zip(shape, said, strict=True)
    ]
