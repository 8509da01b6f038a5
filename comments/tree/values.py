"""Define the arguments and results of operations on the tree: texts, drafts, changes, places."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

import msgspec

from comments.domain import records
from comments.domain.records import Ruling
from comments.store import ownership

# A function that decides about a draft. The function's arguments are the thread, and whether the
# author has an approved comment in the thread.
Decide = Callable[[records.Thread, bool], Ruling]


@dataclasses.dataclass(frozen=True, slots=True)
class RenderedText:
    """A comment's body, its HTML, and the renderer that made the HTML."""

    body: str
    html: str
    renderer: str


class Draft(msgspec.Struct, frozen=True, kw_only=True):
    """A comment to be placed in a thread, without its place in the tree.

    `fingerprint` distinguishes a retry from a different request with the same id. `pace` is the
    maximum number of posts in the thread within `post_shares.PACE`, or 0 for no limit. `detail` is
    stored with the event. `came_from` is the encrypted mark of the author's network
    (`caller_marks`). `brought` is the thread data that was posted with the comment, as encoded by
    `naming`. `origin` recognizes a retry from the same network. `origin` is empty if retries need
    not be recognized.
    """

    id: str
    name: records.ThreadName
    reply_to: str | None
    author: records.Author
    text: RenderedText
    fingerprint: bytes
    created: datetime
    brought: str
    pace: int = 0
    detail: str = ""
    origin: bytes = b""
    came_from: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class ChangeResult:
    """The result of an operation: the comment as it will be stored, and the writes.

    `writes` includes other owners' writes for the same commit; apply all of them. A repeated
    operation has no writes. `event` is the id of the change's event.
    """

    comment: records.Comment
    writes: tuple[ownership.Writes, ...] = ()
    event: str = ""
    is_new: bool = False
    is_from_origin: bool = False  # A retry with the stored `origin`


@dataclasses.dataclass(frozen=True, slots=True)
class ImportedThread:
    """Comments to append to a thread. A new thread gets `state`.

    The thread data of each comment is `title` and `url`, unless the comment has its own (`kept`). A
    new thread is named by its first comments, unless `kept` contains its name. `newest` is the time
    of the thread's newest comment in the file; by default, it is the time of the newest of these
    comments.
    """

    name: records.ThreadName
    nodes: Sequence[records.ImportedComment]
    title: str = ""
    url: str = ""
    state: records.ThreadState = records.ThreadState.OPEN
    kept: records.MovedThread | None = None
    newest: datetime | None = None


class ThreadSettings(NamedTuple):
    """A thread's lock, its own policy, and the names of the fields that a moderator set."""

    is_closed: bool = False
    policy: str = ""
    own: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class Imported:
    """An imported batch: its writes, the number of new comments by thread, and the events' ids.

    Threads without new comments are left out. `ids` contains the new comments, and `made` contains
    the new threads.
    """

    writes: tuple[ownership.Writes, ...]
    by_thread: Mapping[records.ThreadName, int]
    events: tuple[str, ...] = ()
    ids: tuple[str, ...] = ()
    made: tuple[records.ThreadName, ...] = ()

    @property
    def added_count(self) -> int:
        """Return the number of new comments."""
        return sum(self.by_thread.values())


@dataclasses.dataclass(frozen=True, slots=True)
class Recategorized:
    """The writes that recategorize comments, the number of comments, and the ids of the events."""

    writes: tuple[ownership.Writes, ...]
    changed: int
    events: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class TreePlace:
    """A comment's place, computed from its links, and its text if the text must be corrected.

    `was_at` is the stored revision, and `shape` is the thread's shape.
    """

    id: str
    was_at: int
    parent: str | None
    number: int
    level: int
    sort_hash: str
    slug: str
    status: str
    listed: bool
    child_count: int
    text: RenderedText | None = None
    shape: int = 0
