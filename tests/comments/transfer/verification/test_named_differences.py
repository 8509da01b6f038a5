"""A verification names each difference between a file and the store that has no reason."""

from collections.abc import Callable
from pathlib import Path

import pytest

from comments.domain import records
from comments.store import reads
from comments.store.models import comment_rows
from comments.transfer.checking import checked_import
from tests.support.importing.verified_imports import exchange, named, retract, stored, verify
from tests.support.threads import raw_changes
from tests.support.threads.sample_exports import NOW, ROSES, THREAD, plan_of, post, write

# A raw change of a stored comment, and the fields that a verification names. Comment 102 is a reply
# with a reply.
DAMAGES: dict[str, tuple[dict[str, object], set[str]]] = {
    "status": ({"status": "spam"}, {"status"}),
    "retracted": ({"status": "retracted"}, {"status"}),
    "text": ({"body": "other"}, {"text"}),
    "html": ({"html": "<p>other</p>"}, {"html"}),
    "emptied": ({"html": ""}, {"html"}),
    "name": ({"author_name": "Eve"}, {"author name"}),
    "website": ({"author_website": "https://eve.example"}, {"author website"}),
    "address": ({"author_email": "eve@mail.example"}, {"address"}),
    "author": ({"author_id": "g:eve"}, {"author id"}),
    "created": ({"created": NOW}, {"created"}),
    "edited": ({"edited": NOW}, {"edited"}),
    "up": ({"up": 3}, {"votes"}),
    "down": ({"down": 1}, {"votes"}),
    "score": ({"score": 5}, {"votes"}),
    "cast": ({"cast_up": 2}, {"votes"}),
    "voted": ({"up": 2, "score": 2, "cast_up": 2}, {"votes"}),
    "answered": ({"reply_to": None}, {"reply_to"}),
    "site": ({"site": "demo"}, {"site"}),
    "thread": ({"thread": "garden/else", "thread_id": "else"}, {"thread"}),
    "pinned": ({"pinned": True}, {"pinned"}),
}


@pytest.mark.parametrize("name", DAMAGES)
@pytest.mark.parametrize("source", ["101", "103", "109"])
def test_a_damage_is_named(plan: checked_import.CheckedImport, source: str, name: str) -> None:
    values, fields = DAMAGES[name]
    row = reads.get(comment_rows.comment_key(plan.id_of(source)))
    values = {field: value for field, value in values.items() if getattr(row, field) != value}
    raw_changes.comment(plan.id_of(source), **values)
    found = verify(plan)
    expected = {(source, field) for field in fields} if values else set()
    assert named(found) == expected
    assert named(found, explained=True) == set()
    assert found.unexplained_count == len(expected)


def test_a_deleted_comment_is_named(plan: checked_import.CheckedImport) -> None:
    raw_changes.delete_comments(plan.id_of("105"))
    found = verify(plan)
    assert named(found) == {("105", "comment")}
    assert (found.in_file.comments, found.in_store.comments) == (12, 11)


def test_a_deleted_thread_is_named(plan: checked_import.CheckedImport) -> None:
    raw_changes.delete(comment_rows.thread_key(ROSES))
    found = verify(plan)
    assert named(found) == {("", "thread")}
    assert (found.in_file.threads, found.in_store.threads) == (2, 1)


@pytest.mark.parametrize(
    ("field", "value"), [("title", "Tulips"), ("url", "https://else.example/"), ("state", "closed")]
)
def test_a_damaged_thread_is_named(
    plan: checked_import.CheckedImport, field: str, value: str
) -> None:
    raw_changes.change(comment_rows.thread_key(ROSES), **{field: value})
    found = verify(plan)
    assert named(found) == {("", field)}
    (group,) = found.differences
    assert [(each.thread, each.stored) for each in group.examples] == [(ROSES.id, value)]


def test_exchanged_siblings_are_named(garden: records.Site, export: Callable[..., Path]) -> None:
    with plan_of(export(THREAD, *(post(str(n), minute=n) for n in range(5)))) as plan:
        write(plan)
        exchange(stored(plan, "1"), stored(plan, "3"))
        found = verify(plan)
    assert found.unexplained_count == 2
    assert {field for _, field in named(found)} == {"order"}
    assert {source for source, _ in named(found)} <= {"1", "2", "3"}


def test_siblings_with_the_same_number_are_named(
    garden: records.Site, export: Callable[..., Path]
) -> None:
    with plan_of(export(THREAD, *(post(str(n), minute=n) for n in range(3)))) as plan:
        write(plan)
        place = stored(plan, "1")
        raw_changes.comment(plan.id_of("2"), number=place.number)
        assert ("1", "order") in named(verify(plan))


def test_a_damaged_text_changes_the_digest(plan: checked_import.CheckedImport) -> None:
    assert verify(plan).in_file.texts == verify(plan).in_store.texts
    raw_changes.comment(plan.id_of("101"), html="<p>other</p>")
    assert verify(plan).in_file.texts != verify(plan).in_store.texts


@pytest.mark.parametrize(
    ("value", "field"),
    [({"body": "x"}, "text"), ({"author_name": "Eve"}, "author name"), ({"up": 1}, "votes")],
)
def test_what_an_erasure_left_is_named(
    plan: checked_import.CheckedImport, value: dict[str, object], field: str
) -> None:
    retract(plan.id_of("101"))
    assert verify(plan).unexplained_count == 0
    raw_changes.comment(plan.id_of("101"), **value)
    assert named(verify(plan)) == {("101", field)}


@pytest.mark.parametrize("name", ["created", "html"])
def test_a_missing_property_is_named(plan: checked_import.CheckedImport, name: str) -> None:
    raw_changes.without(plan.id_of("101"), name)
    assert named(verify(plan)) == {("101", name)}
