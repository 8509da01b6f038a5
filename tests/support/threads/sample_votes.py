"""Votes for tests: cast in one line each, and the oracle of what they come to."""

from datetime import datetime, timedelta

from comments import config
from comments.domain import records
from comments.events import dispatcher
from comments.jobs import wiring
from comments.posting import cast_vote
from comments.store import reads
from comments.store.models import comment_rows, conversion
from tests.support.histories import counter_oracle
from tests.support.threads import sample_threads

LATER = sample_threads.START + timedelta(days=1)


def vote(
    comment: records.Comment,
    voter: str,
    value: int = 1,
    *,
    network: str = "",
    now: datetime = sample_threads.START,
    settings: config.Settings = sample_threads.SETTINGS,
) -> None:
    """Vote; unless one is given, from a network of the voter's own."""
    request = sample_threads.request(
        comment.site, settings=settings, now=now, network=network or f"network of {voter}"
    )
    cast_vote.vote(comment.id, f"g:{voter}", value, request)


def count_waiting(now: datetime = LATER) -> None:
    """Count every vote that waits, and delete those on what was taken back."""
    for name in cast_vote.waiting(now):
        cast_vote.count(name.id, now=now)
    assert cast_vote.waiting(now) == []


def count_all(now: datetime = LATER) -> None:
    """Count every vote that waits, and deliver what happened."""
    count_waiting(now)
    dispatcher.deliver(counter_oracle.events(), now=now, handlers=wiring.HANDLERS)


def left() -> bool:
    """Whether votes wait to be counted, or events to be delivered."""
    return bool(cast_vote.waiting(LATER) or counter_oracle.events())


def comment(comment_id: str) -> records.Comment:
    """A stored comment."""
    return conversion.comment_record(reads.get(comment_rows.comment_key(comment_id)))


def cast() -> dict[str, dict[str, int]]:
    """The votes that are stored, by comment and voter."""
    found: dict[str, dict[str, int]] = {}
    for message in reads.fetch(reads.Query("Vote")):
        comment, voter = (each.name for each in message.key.path)
        found.setdefault(comment, {})[voter] = message.properties["value"].integer_value
    return found


def stored(comment_id: str) -> tuple[int, int, int]:
    """The votes for and against a comment, and its score, as its row says."""
    row = reads.get(comment_rows.comment_key(comment_id))
    return row.up, row.down, row.score


def assert_counted() -> None:
    """Every row says what its votes come to, none waits to be counted, every counter agrees."""
    assert list(reads.fetch(reads.Query("VotesDue"))) == []
    votes = cast()
    for message in reads.fetch(reads.Query("Comment")):
        row = message.properties
        values = list(votes.get(message.key.path[-1].name, {}).values())
        assert (row["cast_up"].integer_value, row["cast_down"].integer_value) == (
            values.count(1),
            values.count(-1),
        )
        difference = row["up"].integer_value - row["down"].integer_value
        assert row["score"].integer_value == difference
    counter_oracle.assert_all_counted()


def networks() -> list[list[str]]:
    """Who voted from each network, as it is stored."""
    found = reads.fetch(reads.Query("VoterNetwork"))
    return [[each.string_value for each in row.properties["voters"].array_value.values]
            for row in found]  # fmt: skip
