"""A retry stores one comment and never returns another author's; a refused post costs nothing."""

import dataclasses
from datetime import timedelta
from typing import Any

import pytest

from comments import errors
from comments.domain import records
from comments.limits.site_request import SiteRequest
from comments.posting import admission, new_comment, own_comment
from comments.store import connection, reads
from comments.store.models import comment_rows, conversion
from comments.tree.lists import ordered_query
from tests.support.threads import sample_threads

KEY = "0123456789abcdef"


@pytest.fixture(autouse=True)
def _entered(store: connection.Store) -> None:
    """Run all these tests inside the store."""


def test_a_retry_with_the_same_key_returns_the_same_comment(site: records.Site) -> None:
    first = sample_threads.post(site, "hello", key=KEY)
    assert sample_threads.post(site, "hello", key=KEY) == first
    assert sample_threads.listed(site) == ["hello"]


def test_a_first_time_authors_retry_gets_the_same_author(site: records.Site) -> None:
    nobody = records.Author(name="Ann")
    first = sample_threads.post(site, "hello", key=KEY, author=nobody)
    again = sample_threads.post(site, "hello", key=KEY, author=nobody)
    assert first.author.id.startswith("g:")
    assert again == first


def test_two_first_time_authors_are_different(site: records.Site) -> None:
    nobody = records.Author(name="Ann")
    one, two = (sample_threads.post(site, "hello", author=nobody) for _ in range(2))
    assert one.author.id != two.author.id


def test_the_same_key_with_another_text_is_refused(site: records.Site) -> None:
    author = records.Author("Ann", id="g:ann")
    sample_threads.post(site, "hello", key=KEY, author=author)
    with pytest.raises(errors.KeyReused):
        sample_threads.post(site, "something else", key=KEY, author=author)
    assert sample_threads.listed(site) == ["hello"]


@pytest.mark.parametrize(
    "other",
    [
        records.Author("Bob"),
        records.Author("Ann", email="bob@example.org"),
        records.Author("Ann", id="g:bob"),
    ],
)
def test_another_authors_same_key_never_returns_the_first_authors_comment(
    site: records.Site, other: records.Author
) -> None:
    first = sample_threads.post(site, "hello", key=KEY, author=records.Author("Ann"))
    second = sample_threads.post(site, "hello", key=KEY, author=other)
    assert second.id != first.id
    assert second.author.id != first.author.id


def test_the_same_key_in_another_thread_or_site_is_another_comment(site: records.Site) -> None:
    first = sample_threads.post(site, "hello", key=KEY)
    assert sample_threads.post(site, "hello", key=KEY, thread="other").id != first.id


@pytest.mark.parametrize(
    ("field", "values"),
    [
        ("body", {"body": ""}),
        ("body", {"body": "x" * 100_001}),
        ("body", {"body": "nul \x00"}),
        ("body", {"body": "half a pair \ud800"}),
        ("name", {"author": records.Author("")}),
        ("name", {"author": records.Author("a\nb")}),
        ("website", {"author": records.Author("A", "javascript:alert(1)")}),
        ("email", {"author": records.Author("A", email="a@x.org,b@y.org")}),
        ("email", {"author": records.Author("A", email="a@x.org\r\nBcc: b@y.org")}),
        ("email", {"author": records.Author("A", email="nobody")}),
        ("title", {"title": "x" * 501}),
        ("title", {"title": "\x1b[31m"}),
        ("categories", {"categories": ("=1",)}),
        ("categories", {"categories": tuple(f"c{n}" for n in range(6))}),
    ],
)
def test_invalid_input_names_its_field_and_uses_no_number(
    site: records.Site, field: str, values: dict[str, Any]
) -> None:
    draft = admission.Submission("page", None, records.Author("Ann"), "hello")
    with pytest.raises(errors.BadInput) as refused:
        new_comment.post(
            dataclasses.replace(draft, **values),
            SiteRequest(site, sample_threads.SETTINGS, sample_threads.START),
        )
    assert refused.value.field == field
    assert reads.get(comment_rows.thread_key(sample_threads.name_of(site))) is None


def test_authors_edit_their_own_comment(site: records.Site) -> None:
    row = sample_threads.post(site, "old")
    edited = _edit(row, "new **text**")
    assert "<strong>text</strong>" in edited.html
    assert edited.edited == sample_threads.START
    assert sample_threads.listed(site) == ["new **text**"]


@pytest.mark.parametrize("author", ["", "g:other"])
def test_nobody_else_edits_or_retracts_it(site: records.Site, author: str) -> None:
    row = sample_threads.post(site, "mine")
    with pytest.raises(errors.Forbidden):
        _edit(row, "yours", author_id=author)
    with pytest.raises(errors.Forbidden):
        own_comment.retract(row.id, author_id=author, revision=None, now=sample_threads.START)
    assert sample_threads.listed(site) == ["mine"]


def test_a_comment_cannot_be_edited_after_the_edit_window(site: records.Site) -> None:
    row = sample_threads.post(site, "old")
    late = sample_threads.START + timedelta(seconds=sample_threads.SETTINGS.edit_window + 1)
    with pytest.raises(errors.Forbidden, match="edit-window-over"):
        _edit(row, "new", now=late)


def test_an_edit_of_an_older_revision_is_refused(site: records.Site) -> None:
    row = sample_threads.post(site, "one")
    _edit(row, "two", revision=row.revision)
    with pytest.raises(errors.RevisionMismatch):
        _edit(row, "three", revision=row.revision)
    assert sample_threads.listed(site) == ["two"]


def test_retracting_twice_equals_retracting_once(site: records.Site) -> None:
    row = sample_threads.post(site, "one")
    first = own_comment.retract(
        row.id, author_id=row.author.id, revision=None, now=sample_threads.START
    )
    assert (
        own_comment.retract(row.id, author_id=row.author.id, revision=1, now=sample_threads.START)
        == first
    )


def test_a_retracted_comment_cannot_be_edited(site: records.Site) -> None:
    row = sample_threads.post(site, "one")
    own_comment.retract(row.id, author_id=row.author.id, revision=None, now=sample_threads.START)
    with pytest.raises((errors.NotFound, errors.Forbidden)):
        _edit(row, "back again")
    assert ordered_query.thread(sample_threads.name_of(site)) == ()


def test_a_thread_stores_the_first_comments_categories_that_the_site_knows(
    site: records.Site,
) -> None:
    site = sample_threads.filing(site, "news", "sport")
    sample_threads.post(site, "one", categories=("Sport", "Mine", " NEWS "))
    sample_threads.post(site, "two", categories=("news",))
    thread = conversion.thread_record(
        reads.get(comment_rows.thread_key(sample_threads.name_of(site)))
    )
    assert thread.categories == ("news", "sport")
    rows = list(reads.fetch(reads.Query("Comment")))
    assert [conversion.state_from_message(row).categories for row in rows] == [
        ("news", "sport")
    ] * 2


def test_a_thread_stores_the_title_and_url_of_its_first_comment(site: records.Site) -> None:
    sample_threads.post(site, "one", title="A page", url="https://example.com/page")
    sample_threads.post(site, "two", title="Another title")
    thread = conversion.thread_record(
        reads.get(comment_rows.thread_key(sample_threads.name_of(site)))
    )
    assert (thread.title, thread.url) == ("A page", "https://example.com/page")


def test_the_query_of_a_visitors_address_is_not_stored(site: records.Site) -> None:
    sample_threads.post(
        site, "one", thread="example.com/page", url="https://example.com/page?reset=s3#x"
    )
    name = records.ThreadName(site.id, "example.com/page")
    thread = conversion.thread_record(reads.get(comment_rows.thread_key(name)))
    assert thread.url == "https://example.com/page"


def _edit(row: records.Comment, body: str, **changed: Any) -> records.Comment:
    values = {
        "author_id": row.author.id,
        "revision": None,
        "settings": sample_threads.SETTINGS,
        "now": sample_threads.START,
    }
    return own_comment.edit(row.id, body=body, **{**values, **changed})


def test_a_retry_finds_its_comment_even_if_posting_there_is_no_longer_allowed(
    store: connection.Store, site: records.Site
) -> None:
    parent = sample_threads.post(site, "parent")
    made = sample_threads.post(site, "reply", parent.id, key=KEY)
    own_comment.retract(
        parent.id, author_id=parent.author.id, revision=None, now=sample_threads.START
    )
    assert sample_threads.post(site, "reply", parent.id, key=KEY).id == made.id
    with pytest.raises(errors.KeyReused):
        sample_threads.post(site, "other text", parent.id, key=KEY, author=made.author)
    with pytest.raises(errors.Conflict):
        sample_threads.post(site, "another", parent.id)
