"""Posts in a thread with thirty comments and all counters have the expected cost."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import pytest

from comments.domain import records
from comments.store import connection
from datastore_emulator import inprocess, testing
from tests.support import prepared_stores
from tests.support.store_interceptors import Calls
from tests.support.threads import sample_threads


@pytest.fixture(scope="module", params=[(), tuple("abcde")], ids=["no category", "five"])
def begun(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> prepared_stores.Beginning:
    """A thread with thirty comments, filed in the categories that the parameter lists."""
    filed: tuple[str, ...] = request.param

    def grow(site: records.Site) -> tuple[str, ...]:
        site = sample_threads.filing(site, *filed)
        sample_threads.grow(site, {f"{n}": {} for n in range(30)}, categories=filed)
        return filed

    return prepared_stores.grown(tmp_path_factory, grow)


class Post(NamedTuple):
    """A post below a chain of `above` comments, and the cost that is allowed for it."""

    above: int
    reads: int
    calls: Sequence[str] = ("Lookup", "Commit")


DEEPEST = sample_threads.SETTINGS.scheme.levels  # The parent is on the deepest level


@pytest.mark.parametrize("who", [{}, {"author": records.Author("known", id="g:known")}])
@pytest.mark.parametrize("key", [None, "0123456789abcdef"])
@pytest.mark.parametrize(
    "asked",
    [
        Post(0, reads=3),
        Post(1, reads=4),
        Post(DEEPEST - 1, reads=4),
        Post(DEEPEST, reads=5, calls=("Lookup", "Lookup", "Commit")),
    ],
    ids=["a root", "a reply", "on the deepest level", "below the deepest level"],
)
def test_a_post_takes_five_reads_five_writes_and_three_calls(  # noqa: PLR0917 - parametrization passes them
    store: connection.Store,
    site: records.Site,
    engine: inprocess.Engine,
    calls: Calls,
    asked: Post,
    key: str | None,
    who: dict[str, Any],
    begun: prepared_stores.Beginning,
) -> None:
    site = sample_threads.filing(site, *begun.found)
    sample_threads.post(site, "the first of this process, which does not know the thread", **who)
    parent = None
    for level in range(asked.above):
        parent = sample_threads.post(site, f"level {level}", parent, **who).id
    calls.names.clear()
    with testing.meter(engine) as cost:
        made = sample_threads.post(site, "reply", parent, key=key, **who)
    assert made.level == min(asked.above, DEEPEST - 1)
    assert calls.names == [*asked.calls]
    assert cost.reads == asked.reads <= 5
    assert cost.writes <= 5
    assert cost.deletes == 0
    touched = {path[-2] for path in cost.keys_read | cost.keys_written}
    assert not {"Category", "Day", "Month", "Appearance"} & touched
