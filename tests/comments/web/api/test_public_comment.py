"""A comment's public JSON contains none of its row's private fields."""

import re
from datetime import UTC, datetime

import msgspec
import pytest

from comments.domain import presentation, records
from comments.store.models import comment_rows
from comments.web.http.decode import parameters, paths

NOW = datetime(2026, 1, 2, 3, 4, 5, 678901, UTC)


def row(status: records.Status) -> records.Comment:
    return records.Comment(
        id="a" * 26,
        site="demo",
        thread="t",
        sort_hash="AB",
        level=0,
        number=1,
        child_count=2,
        parent=None,
        reply_to=None,
        slug="slug",
        author=records.Author("canary", "https://canary.example/", "canary@x.example", "g:canary"),
        body="canary",
        html="<p>canary</p>",
        status=status,
        listed=True,
        revision=3,
        created=NOW,
        edited=NOW,
        score=5,
    )


@pytest.mark.parametrize("status", [s for s in records.Status if s is not records.Status.APPROVED])
def test_a_comment_that_is_not_approved_shows_only_its_place(status: records.Status) -> None:
    shown = presentation.comment(row(status), 2)
    assert b"canary" not in msgspec.json.encode(shown)
    assert (shown.html, shown.author, shown.edited, shown.score) == ("", None, None, 0)
    assert (shown.status, shown.replies) == (presentation.Shown.REMOVED, 2)


def test_an_approved_comment_shows_only_its_public_fields() -> None:
    shown = msgspec.json.encode(presentation.comment(row(records.Status.APPROVED)))
    assert b"<p>canary</p>" in shown
    assert b"2026-01-02T03:04:05.678901Z" in shown
    assert b"canary@x.example" not in shown
    assert b"g:canary" not in shown
    assert b"replies" not in shown


@pytest.mark.parametrize("text", ["a" * 26, "234567" + "z" * 20, "a" * 25, "A" * 26, "1" * 26, ""])
def test_all_checks_of_a_comment_id_agree(text: str) -> None:
    try:
        msgspec.convert(text, parameters.CommentId)
    except msgspec.ValidationError:
        is_shaped = False
    else:
        is_shaped = True
    assert is_shaped == comment_rows.is_comment_id(text)
    assert bool(re.fullmatch(paths.CommentId.regex, text)) == comment_rows.is_comment_id(text)
