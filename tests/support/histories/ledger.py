"""Record every change to comments in a ledger: the oracle for counters, events and followers.

The ledger follows the design but uses none of the product's code, only plain sums over plain rows.
Each step returns "done" or the name of the error that the product raises; a failed step changes
nothing. Each time, the ledger recomputes the expected counters and the visible comments from all
rows.
"""

import dataclasses
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import NamedTuple

Numbers = dict[str, int]
DONE = "done"
MOST_PINS = 3
HELD = "casino"  # A word that a rule holds for moderation
VERDICTS = {
    "approve": "approved",
    "reject": "rejected",
    "spam": "spam",
    "hide": "hidden",
    "hold": "pending",
}
BY = " by "  # Separates place and author in a scope's name


@dataclasses.dataclass
class Said:
    """A comment as the product must store it. `thread` has the form "site/thread"."""

    id: str
    thread: str
    author: str
    status: str
    reply_to: str | None
    parent: str | None
    level: int
    number: int
    body: str
    created: datetime
    children: int = 0
    revision: int = 1
    listed: bool = False
    up: int = 0
    down: int = 0
    categories: tuple[str, ...] = ()
    stood: str = ""
    pinned: bool = False

    @property
    def site(self) -> str:
        return self.thread.partition("/")[0]


class Counted(NamedTuple):
    """The values of a comment that event handlers count, at one moment."""

    thread: str
    at: datetime
    categories: tuple[str, ...]
    author: str
    status: str
    up: int
    down: int

    @property
    def site(self) -> str:
        return self.thread.partition("/")[0]

    @property
    def day(self) -> str:
        return self.at.date().isoformat()


class Draft(NamedTuple):
    """A comment to post under an idempotency key, or to import with a status and votes."""

    key: str
    thread: str
    reply_to: str | None
    author: str
    body: str
    status: str = "approved"
    up: int = 0
    down: int = 0


Change = tuple[Counted | None, Counted | None]


class Ledger:
    """The comments, events and followers that the product must store."""

    def __init__(self, *, levels: int, edit_window: float) -> None:
        self._levels = levels
        self._edit_window = edit_window
        self.said: dict[str, Said] = {}
        self.roots: dict[str, int] = {}
        self.keys: dict[str, tuple[str, Draft]] = {}
        self.events: dict[str, list[Change]] = {}
        self.followers: dict[str, set[str]] = {}
        self.categories: dict[str, tuple[str, ...]] = {}
        self.votes: dict[tuple[str, str], int] = {}
        self.audit: list[tuple[str, str, str, str]] = []
        self.refused: set[str] = set()
        self._cast: dict[str, tuple[int, int]] = {}

    def post(self, draft: Draft, comment_id: str, now: datetime) -> str:
        """Post a draft; `comment_id` names the comment if the draft's key is new."""
        if draft.key in self.keys:
            return DONE if self.keys[draft.key][1] == draft else "KeyReused"
        answered = self.said.get(draft.reply_to or "")
        if draft.reply_to is not None:
            if answered is None or answered.thread != draft.thread:
                return "NotFound"
            if answered.status == "retracted":
                return "Conflict"
            if answered.status != "approved":
                return "NotFound"
        self.keys[draft.key] = comment_id, draft
        row = self._place(draft, comment_id, now)
        row.status = "pending" if HELD in draft.body else "approved"
        self._settle({comment_id})
        self.events[f"{comment_id}.1"] = [(None, _counted(row))]
        return DONE

    def place(self, drafts: Iterable[Draft], now: datetime) -> str:
        """Import drafts. A draft's key is its comment's id. Existing comments do not change."""
        added: dict[str, None] = {}
        for draft in drafts:
            if draft.key not in self.said:
                self._place(draft, draft.key, now)
                added[draft.key] = None
        if added:
            self._settle(set(added))
            changes: list[Change] = [(None, _counted(self.said[each])) for each in added]
            self.events[f"{next(iter(added))}.1"] = changes
        return DONE

    def _place(self, draft: Draft, comment_id: str, now: datetime) -> Said:
        parent = self.said.get(draft.reply_to or "")
        if parent is not None and parent.level == self._levels - 1:
            parent = self.said.get(parent.parent or "")
        if parent is None:
            number = self.roots.get(draft.thread, 0)
            self.roots[draft.thread] = number + 1
        else:
            number = parent.children = parent.children + 1
        row = self.said[comment_id] = Said(
            id=comment_id,
            thread=draft.thread,
            author=draft.author,
            status=draft.status,
            reply_to=draft.reply_to,
            parent=None if parent is None else parent.id,
            level=0 if parent is None else parent.level + 1,
            number=number,
            body=draft.body,
            created=now,
            up=draft.up,
            down=draft.down,
            categories=self.categories.get(draft.thread, ()),
        )
        return row

    def edit(self, comment_id: str, author: str, body: str, now: datetime) -> str:
        row = self.said[comment_id]
        is_late = (now - row.created).total_seconds() > self._edit_window
        if not author or author != row.author or is_late:
            return "Forbidden"
        if row.status == "retracted":
            return "NotFound"
        if row.body != body and row.status in {"rejected", "hidden"}:
            return "Conflict"
        if row.body != body:
            before = _counted(row)
            row.body = body
            row.revision += 1
            if HELD in body and row.status == "approved":
                row.status, row.stood = "pending", "approved"
                self._settle({row.id})
            self.events[f"{row.id}.{row.revision}"] = [(before, _counted(row))]
        return DONE

    def retract(self, comment_id: str, author: str) -> str:
        row = self.said[comment_id]
        if row.status == "retracted":
            return DONE
        if not author or author != row.author:
            return "Forbidden"
        before = _counted(row)
        row.status, row.author, row.body, row.stood = "retracted", "", "", ""
        row.pinned = False
        row.up = row.down = 0
        self.votes = {key: vote for key, vote in self.votes.items() if key[0] != row.id}
        row.revision += 1
        self._settle({row.id})
        self.events[f"{row.id}.{row.revision}"] = [(before, _counted(row))]
        return DONE

    def judge(self, comment_id: str, verb: str) -> str:
        """Apply a moderator's decision; audit it if it changes something."""
        row = self.said[comment_id]
        if row.status == "retracted":
            return "Conflict"
        if verb in {"pin", "unpin"}:
            return self._pin(row, verb)
        if verb == "restore":
            if not row.stood:
                return "Conflict"
            status, stood = row.stood, ""
        else:
            status, stood = VERDICTS[verb], row.status
            if status == row.status:
                return DONE
            if status == "hidden" and row.status != "approved":
                return "Conflict"
        before = _counted(row)
        self.audit.append((row.id, verb, row.status, status))
        row.status, row.stood = status, stood
        row.revision += 1
        self._settle({row.id})
        self.events[f"{row.id}.{row.revision}"] = [(before, _counted(row))]
        if status in {"spam", "rejected"} and before.status != status:
            self.refused.add(row.id)
        return DONE

    def _pin(self, row: Said, verb: str) -> str:
        if row.pinned == (verb == "pin"):
            return DONE
        if verb == "pin" and row.status != "approved":
            return "Conflict"
        if verb == "pin":
            others = [
                each for each in self.said.values() if each.pinned and each.thread == row.thread
            ]
            if sum(each.status == "approved" for each in others) >= MOST_PINS:
                return "Conflict"
            for each in others:
                each.pinned = each.status == "approved"
        row.pinned = verb == "pin"
        row.revision += 1
        self.audit.append(
            (row.id, verb, "" if row.pinned else "pinned", "pinned" if row.pinned else "")
        )
        self.events[f"{row.id}.{row.revision}"] = [(_counted(row), _counted(row))]
        return DONE

    def vote(self, comment_id: str, voter: str, value: int) -> str:
        row = self.said[comment_id]
        if row.status == "retracted":
            return "Conflict" if row.listed else "NotFound"
        if row.author == voter:  # A later check would tell authors about the status
            return "Forbidden"
        if row.status != "approved":
            return "NotFound"
        self.votes.pop((comment_id, voter), None)
        if value:
            self.votes[comment_id, voter] = value
        return DONE

    def count(self, comment_id: str) -> str:
        """Set the row's votes to the imported votes plus all cast votes."""
        row = self.said[comment_id]
        cast = [value for (comment, _), value in self.votes.items() if comment == comment_id]
        old, new = self._cast.get(comment_id, (0, 0)), (cast.count(1), cast.count(-1))
        if row.status != "retracted" and old != new:
            before = _counted(row)
            row.up += new[0] - old[0]
            row.down += new[1] - old[1]
            row.revision += 1
            self._cast[comment_id] = new
            self.events[f"{row.id}.{row.revision}"] = [(before, _counted(row))]
        return DONE

    def file(self, thread: str, categories: tuple[str, ...]) -> str:
        if thread not in self.roots:
            return "NotFound"
        self.categories[thread] = categories
        return DONE

    def walk(self, thread: str, events: Iterable[str]) -> str:
        """Move comments to their thread's categories; `events` contains the known event ids."""
        wanted = self.categories.get(thread, ())
        rows = [row for row in self.said.values() if row.thread == thread]
        moved = sorted((row for row in rows if row.categories != wanted), key=lambda row: row.id)
        if moved:
            changes: list[Change] = []
            for row in moved:
                before = _counted(row)
                row.categories = wanted
                changes.append((before, _counted(row)))
            told = {each for each in events if each.startswith(f"{moved[0].id}.c")}
            self.events[min(told - self.events.keys(), default="no event")] = changes
        return DONE

    def follow(self, thread: str, follower: str, *, follows: bool) -> str:
        members = self.followers.setdefault(thread, set())
        (members.add if follows else members.discard)(follower)
        return DONE

    def _settle(self, counted: set[str]) -> None:
        """Recompute `listed` (approved, or above a listed comment). Each change adds a revision."""
        listed = {row.id for row in self.said.values() if row.status == "approved"}
        for comment_id in list(listed):
            above = self.said[comment_id].parent
            while above is not None:
                listed.add(above)
                above = self.said[above].parent
        for row in self.said.values():
            if row.listed != (row.id in listed):
                row.listed = row.id in listed
                row.revision += row.id not in counted

    def in_order(self, thread: str) -> list[str]:
        """Return the ids that readers of a thread see: replies below their parent, by number."""
        children: dict[str | None, list[Said]] = {}
        for row in self.said.values():
            if row.thread == thread:
                children.setdefault(row.parent, []).append(row)
        order: list[str] = []

        def walk(parent: str | None) -> None:
            for row in sorted(children.get(parent, ()), key=lambda each: each.number):
                order.extend([row.id] if row.listed else [])
                walk(row.id)

        walk(None)
        return order

    def later(self, waiting: Iterable[str]) -> dict[str, Numbers]:
        """Return all numbers counted from events, except from the undelivered events `waiting`."""
        sums: dict[str, Numbers] = {}
        for row in self.said.values():
            _add_later(sums, _counted(row), 1)
        for event in waiting:
            for before, after in self.events[event]:
                _add_later(sums, before, 1)
                _add_later(sums, after, -1)
        return _with_participants(sums)


def in_threads(rows: Iterable[Said]) -> dict[str, Numbers]:
    """Return the numbers that threads and their authors must have for the given comments."""
    sums: dict[str, Numbers] = {}
    for row in rows:
        here = sums.setdefault(f"thread {row.thread}", {})
        _add(here, _counted(row), 1)
        here["listed"] = here.get("listed", 0) + row.listed
        if row.author:
            _add(sums.setdefault(f"thread {row.thread}{BY}{row.author}", {}), _counted(row), 1)
    return _with_participants(sums)


def later(rows: Iterable[Said]) -> dict[str, Numbers]:
    """Return all numbers that are counted from events, assuming that every event is delivered."""
    sums: dict[str, Numbers] = {}
    for row in rows:
        _add_later(sums, _counted(row), 1)
    return _with_participants(sums)


def _with_participants(sums: Mapping[str, Numbers]) -> dict[str, Numbers]:
    """Add the number of authors with approved comments; drop zeros."""
    found = {scope: dict(numbers) for scope, numbers in sums.items()}
    for scope, numbers in sums.items():
        place, by, _ = scope.partition(BY)
        if by and numbers.get("approved", 0) > 0:
            whole = found.setdefault(place, {})
            whole["participants"] = whole.get("participants", 0) + 1
    return without_zeros(found)


def without_zeros(found: Mapping[str, Numbers]) -> dict[str, Numbers]:
    """Return the numbers in the stored form, without zeros and empty scopes."""
    kept = {scope: {k: n for k, n in numbers.items() if n} for scope, numbers in found.items()}
    return {scope: numbers for scope, numbers in kept.items() if numbers}


def filed_under(categories: Iterable[str]) -> set[str]:
    """Return categories and all categories above them: "a/b" is below "a"."""
    parts = [category.split("/") for category in categories]
    return {"/".join(each[:length]) for each in parts for length in range(1, len(each) + 1)}


def _counted(row: Said) -> Counted:
    return Counted(
        row.thread, row.created, row.categories, row.author, row.status, row.up, row.down
    )


def _add_later(sums: dict[str, Numbers], counted: Counted | None, times: int) -> None:
    if counted is None:
        return
    site, day, author = counted.site, counted.day, counted.author
    _add(sums.setdefault(f"site {site}", {}), counted, times)
    if author:
        _add(sums.setdefault(f"site {site}{BY}{author}", {}), counted, times)
    filed = filed_under(counted.categories)
    places = [f"day {site} {day} {each}" for each in ("", *filed)]
    for place in (*places, *(f"category {site} {each}" for each in filed)):
        here = sums.setdefault(place, {})
        here[counted.status] = here.get(counted.status, 0) + times
        if author and counted.status == "approved":
            by_author = sums.setdefault(f"{place}{BY}{author}", {})
            by_author["approved"] = by_author.get("approved", 0) + times
    if counted.status == "approved":
        _add_periods(sums, counted, times)


def _add_periods(sums: dict[str, Numbers], counted: Counted, times: int) -> None:
    """Add what only approved comments count: in months, and the votes of days."""
    site, day, author = counted.site, counted.day, counted.author
    page = counted.thread.removeprefix(site)
    month = sums.setdefault(f"month {site} {day[:7]}", {})
    for name in (f"h{counted.at:%d%H}", f"t{day[8:]}{page}", f"a{day[8:]}{author}"):
        if name != f"a{day[8:]}":
            month[name] = month.get(name, 0) + times
    whole = sums.setdefault(f"day {site} {day} ", {})
    for name, votes in (("up", counted.up), ("down", counted.down)):
        whole[name] = whole.get(name, 0) + times * votes


def _add(numbers: Numbers, counted: Counted, times: int) -> None:
    more = {counted.status: times}
    if counted.status == "approved":
        more["up"] = times * counted.up
        more["down"] = times * counted.down
        more["score"] = times * (counted.up - counted.down)
    for name, number in more.items():
        numbers[name] = numbers.get(name, 0) + number
