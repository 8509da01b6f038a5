"""Arguments and results of operations on the tree: texts, drafts, changes, places."""

import dataclasses
from collections.abc import Callable
from datetime import datetime

from comments.domain import records
from comments.domain.records import Ruling, Status
from comments.store import ownership

# Decides about a draft, from its thread and whether its author has an approved comment there.
Decide = Callable[[records.Thread, bool], Ruling]


@dataclasses.dataclass(frozen=True, slots=True)
class RenderedText:
    """A body, its HTML, and the renderer that made the HTML."""

    body: str
    html: str
    renderer: str


def _welcome(_thread: records.Thread, _is_known: bool) -> Ruling:  # noqa: FBT001 - see `Decide`
    return Ruling(Status.APPROVED)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A comment to be placed in a thread: everything but its place in the tree.

    `fingerprint` distinguishes a repeat of the same request from another request with the same id;
    `former_fingerprint` does so for comments that an older release stored. `decide` is called in
    every run of the transaction, and raises if nothing may be posted. `pace` is the thread's limit
    of posts within `in_transaction.PACE`; 0 for no limit. `detail` is stored with the event.
    `came_from` is the mark of the author's network, encrypted (`caller_marks`). `brought` is what
    the comment says about the thread, as `naming` encodes it. `origin` recognizes a repeat from the
    same network; empty if that is not needed.
    """

    id: str
    name: records.ThreadName
    reply_to: str | None
    author: records.Author
    text: RenderedText
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
class ChangeResult:
    """The result of an operation: the comment as it will be stored, and the writes.

    `writes` includes other owners' writes of the same commit: apply all of them. A repeat has none.
    `event` is the id of the change's event.
    """

    comment: records.Comment
    writes: tuple[ownership.Writes, ...] = ()
    event: str = ""
    is_new: bool = False
    is_from_origin: bool = False  # a repeat whose `origin` is the stored one


@dataclasses.dataclass(frozen=True, slots=True)
class Imported:
    """The writes of an imported batch, the number of new comments, and the ids of the events."""

    writes: tuple[ownership.Writes, ...]
    added: int
    events: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class Recategorized:
    """The writes that recategorize comments, how many change, and the ids of the events."""

    writes: tuple[ownership.Writes, ...]
    changed: int
    events: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class TreePlace:
    """A comment's place by its links. `was_below` and `was` are its stored parent and number."""

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
