"""A thread accepts exactly its limit of posts, however its counters are spread."""

import dataclasses
from datetime import timedelta

import pytest

from comments import errors
from comments.domain import records
from comments.posting import admission, new_comment
from comments.store import connection
from comments.tree.counters import sharding
from tests.support.threads import sample_threads

MOST = 30
SETTINGS = dataclasses.replace(sample_threads.SETTINGS, posts_per_thread=MOST)


def _post(site: records.Site, number: int, parent: str | None = None, **after: int) -> str:
    request = sample_threads.request(
        site, settings=SETTINGS, now=sample_threads.START + timedelta(**after)
    )
    author = records.Author(f"Reader {number}")
    sent = admission.Submission("page", parent, author, f"Text {number}")
    return new_comment.post(sent, request).comment.id


def _accepted(site: records.Site, parent: str | None, **after: int) -> int:
    """Post until the thread refuses; return how many posts it accepted."""
    for number in range(2 * MOST):
        try:
            _post(site, number, parent, **after)
        except errors.TooMany:
            return number
    raise AssertionError("the thread has no limit")


@pytest.mark.slow
@pytest.mark.parametrize("shards", [1, 7, 64])
@pytest.mark.parametrize("is_reply", [False, True])
def test_one_writer_may_use_the_whole_limit_of_a_spread_thread(
    store: connection.Store, site: records.Site, shards: int, *, is_reply: bool
) -> None:
    first = _post(site, 0)
    sharding.spread(sample_threads.name_of(site), shards)
    parent = first if is_reply else None
    assert _accepted(site, parent) == MOST - 1
    assert _accepted(site, parent, minutes=11) == MOST


def test_spreading_and_merging_forget_no_posts_and_refuse_none(
    store: connection.Store, site: records.Site
) -> None:
    name = sample_threads.name_of(site)
    first = _post(site, 0)
    for number, change in enumerate(
        (
            lambda: sharding.spread(name, 4),
            lambda: sharding.spread(name, 16),
            lambda: sharding.gather(name),
            lambda: sharding.spread(name, 8),
        )
    ):
        for each in range(5):
            _post(site, 5 * number + each + 1, first)
        change()
    assert _accepted(site, first) == MOST - 21
    sharding.gather(name)
    assert _accepted(site, first) == 0
