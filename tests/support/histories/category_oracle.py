"""Compare the lists of each category with a plain filter and sort of all stored rows."""

import functools
from collections.abc import Callable, Mapping
from typing import TypeVar

from comments.domain import presentation, records
from comments.domain.records import Status
from comments.moderation import review_queue, thread_list
from comments.reading import feeds
from comments.store import reads
from comments.store.models import comment_rows
from tests.support.threads import sample_threads

SECRET = sample_threads.SETTINGS.secret
T = TypeVar("T")


def filed(site: str) -> dict[str, tuple[str, ...]]:
    """Return the categories of each thread of a site, by key name."""
    return {row.key.id(): tuple(row.categories) for row in _rows("Thread") if row.site == site}


def moved(threads: Mapping[str, tuple[str, ...]], old: str, new: str) -> dict[str, tuple[str, ...]]:
    """Return the categories of threads after a move of a category."""
    renamed = {
        key: {
            new + name[len(old) :] if f"{name}/".startswith(f"{old}/") else name for name in names
        }
        for key, names in threads.items()
    }
    return {key: tuple(sorted(names)) for key, names in renamed.items()}


def assert_settled() -> None:
    """Check that all comments have the categories of their threads."""
    threads = {row.key.id(): row.categories for row in _rows("Thread")}
    assert all(row.categories == threads[row.thread] for row in _rows("Comment"))


def assert_listed(site: records.Site) -> None:
    """Check the threads, comments and feed of each category, and of each part of a path."""
    threads = [row for row in _rows("Thread") if row.site == site.id]
    comments = [row for row in _rows("Comment") if row.site == site.id]
    for term in (*_terms([*threads, *comments]), "none", "*/none"):
        there = [row for row in threads if _is_found(row, term)]
        said = [row for row in comments if _is_found(row, term) and row.status == Status.APPROVED]
        assert _pages(functools.partial(_threads, site, term)) == [
            row.key.id() for row in sorted(there, key=lambda row: (-_time(row), row.key.id()))
        ]
        active = thread_list.active_threads(
            thread_list.ThreadFilter(site.id, category=term), secret=SECRET
        )
        assert {thread.name.id for thread in active.threads} == {row.thread for row in there}
        said.sort(key=lambda row: (-_time(row), row.revision, row.key.id()))
        ids = [row.key.id() for row in said]
        assert _pages(functools.partial(_comments, site, term)) == ids
        source = feeds.SiteFeed(site, term)
        source.look()
        feed = [entry.comment for entry in source.make().entries]
        assert [comment.id for comment in feed] == ids[: feeds.LIMIT]
        assert all(comment.status is presentation.Shown.APPROVED for comment in feed)


def _is_found(row: comment_rows.ThreadRow | comment_rows.CommentRow, term: str) -> bool:
    if term.startswith("*/"):
        return any(term[2:] in name.split("/") for name in row.categories)
    return any(f"{name}/".startswith(f"{term}/") for name in row.categories)


def _terms(rows: list[comment_rows.ThreadRow | comment_rows.CommentRow]) -> set[str]:
    names = {name for row in rows for name in row.categories}
    paths = {"/".join(name.split("/")[:n]) for name in names for n in (1, 2, 3)}
    return paths | {f"*/{part}" for name in names for part in name.split("/")}


def _time(row: comment_rows.ThreadRow | comment_rows.CommentRow) -> float:
    return row.created.timestamp()


def _threads(site: records.Site, term: str, cursor: str | None) -> tuple[list[str], str | None]:
    page = thread_list.threads(site.id, term, limit=1, cursor=cursor, secret=SECRET)
    return [comment_rows.thread_key_name(thread.name) for thread in page.threads], page.cursor


def _comments(site: records.Site, term: str, cursor: str | None) -> tuple[list[str], str | None]:
    wanted = review_queue.QueueFilter(site.id, (Status.APPROVED,), category=term)
    page = review_queue.page(wanted, limit=3, cursor=cursor, secret=SECRET)
    return [case.comment.id for case in page.cases], page.cursor


def _pages(read: Callable[[str | None], tuple[list[str], str | None]]) -> list[str]:
    some, cursor = read(None)
    while cursor is not None:
        more, cursor = read(cursor)
        some += more
    return some


def _rows(kind: str) -> list[comment_rows.ThreadRow | comment_rows.CommentRow]:
    keys = [message.key.path[-1].name for message in reads.fetch(reads.Query(kind, keys_only=True))]
    key = comment_rows.thread_key_of if kind == "Thread" else comment_rows.comment_key
    return [row for row in reads.get_multi([key(name) for name in keys]) if row is not None]
