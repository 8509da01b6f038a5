"""Cast votes in one line, and compare vote sums with an oracle."""

from datetime import datetime, timedelta

from comments import config
from comments.domain import records
from comments.events import dispatcher
from comments.posting import cast_vote
from comments.store import reads
from comments.store.models import comment_rows, conversion
from comments.upkeep import wiring
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
    """Vote, by default from a network that only this voter uses."""
    request = sample_threads.request(
        comment.site, settings=settings, now=now, network=network or f"network of {voter}"
    )
    cast_vote.vote(comment.id, f"g:{voter}", value, request)


def count_waiting(now: datetime = LATER) -> None:
    """Count every pending vote; delete the votes on retracted comments."""
    for name in cast_vote.waiting_comments(now):
        cast_vote.count(name.id, now=now)
    assert cast_vote.waiting_comments(now) == []


def count_all(now: datetime = LATER) -> None:
    """Count every pending vote and deliver the events."""
    count_waiting(now)
    dispatcher.deliver(counter_oracle.events(), now=now, handlers=wiring.HANDLERS)


def left() -> bool:
    """Return whether votes are uncounted or events are undelivered."""
    return bool(cast_vote.waiting_comments(LATER) or counter_oracle.events())


def comment(comment_id: str) -> records.Comment:
    """Return a stored comment."""
    return conversion.comment_record(reads.get(comment_rows.comment_key(comment_id)))


def cast() -> dict[str, dict[str, int]]:
    """Return the stored votes by comment and voter."""
    found: dict[str, dict[str, int]] = {}
    for message in reads.fetch(reads.Query("Vote")):
        comment, voter = (each.name for each in message.key.path)
        found.setdefault(comment, {})[voter] = message.properties["value"].integer_value
    return found


def stored(comment_id: str) -> tuple[int, int, int]:
    """Return the upvotes, downvotes and score in a comment's row."""
    row = reads.get(comment_rows.comment_key(comment_id))
    return row.up, row.down, row.score


def assert_counted() -> None:
    """Check that rows have their votes' sums, no vote is pending, and all counters are exact."""
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
    """Return each network's stored voters."""
    found = reads.fetch(reads.Query("VoterNetwork"))
    return [[each.string_value for each in row.properties["voters"].array_value.values]
            for row in found]  # fmt: skip
