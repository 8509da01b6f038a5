"""What verbs of the tree take and give: texts, drafts, changes, places."""

import dataclasses
from collections.abc import Callable
from datetime import datetime

from comments.domain import records
from comments.domain.records import Ruling, Status
from comments.store import ownership

# What becomes of a draft, by its thread and whether its author has an approved comment there.
Decide = Callable[[records.Thread, bool], Ruling]


@dataclasses.dataclass(frozen=True, slots=True)
class Text:
    """A body with what it was rendered to, and by which renderer."""

    body: str
    html: str
    renderer: str


def _welcome(_thread: records.Thread, _is_known: bool) -> Ruling:  # noqa: FBT001 - see `Decide`
    return Ruling(Status.APPROVED)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A comment on its way into a thread; everything but its place in the tree.

    `fingerprint` tells a repeat of the same request from another one under the same id; so does
    `former_fingerprint`, where an older release stored the comment. `decide`
    is asked in the transaction, each time it runs, and raises where nothing may be posted.
    `pace` is how many posts its thread takes within `in_transaction.PACE`; 0 for any number.
    `detail` is what its event says beside the change. `came_from` is the mark of its network,
    sealed (`caller_marks`). `brought` is what it says of the thread, as `naming` encodes it.
    `origin` tells a repeat from the same network; empty where nobody asks.
    """

    id: str
    name: records.ThreadName
    reply_to: str | None
    author: records.Author
    text: Text
    fingerprint: bytes
    created: datetime
    brought: str
    former_fingerprint: bytes = b""
    decide: Decide = _welcome
    pace: int = 0
    detail: str = ""
    origin: bytes = b""
    came_from: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class Change:
    """What a verb did: the comment as it will stand, and what to put. A repeat puts nothing.

    `writes` holds what other owners put in the same commit too: apply all of it. `event` tells of
    the change.
    """

    comment: records.Comment
    writes: tuple[ownership.Writes, ...] = ()
    event: str = ""
    is_new: bool = False
    is_from_origin: bool = False  # a repeat, and its `origin` is the stored one


@dataclasses.dataclass(frozen=True, slots=True)
class Imported:
    """What a batch of imported comments puts, how many were not there yet, and what tells of it."""

    writes: tuple[ownership.Writes, ...]
    added: int
    events: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class Recategorized:
    """What counts comments under other categories, how many of them, and what tells of it."""

    writes: tuple[ownership.Writes, ...]
    changed: int
    events: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a comment belongs by its links. `was_below` and `was` are its stored parent, number."""

    id: str
    was_below: str | None
    was: int
    parent: str | None
    number: int
    level: int
    sort_hash: str
    slug: str
    listed: bool
    child_count: int
