"""Manage votes on comments: one per voter and comment, with the value +1 or -1.

This module owns the rules for voting, and three kinds:

    Vote          key: comment / voter. `value` is +1 or -1; a withdrawn vote is deleted.
                  `side`, "{comment}{sign}", serves the query that counts votes; `votes_of`,
                  "{sign}{voter}/{thread's key name}", serves the query for a voter's own votes
    VotesDue      key: comment. Exists while the comment may have uncounted votes; `due` is the time
                  at which the votes must be counted
    VoterNetwork  key: comment / keyed hash of a network and the comment. `voters` are keyed hashes
                  of the network's voters on the comment. The row is deleted at `due`. For an
                  IPv6 network, there are also rows for the wider networks around it
                  (`client_networks.WIDER`)

Votes from unrelated networks share no row except the VotesDue, which the first vote after a count
writes. One transaction counts the Vote entities, updates the comment's row (`changes.count_votes`)
and deletes the VotesDue.

Invariant: A comment with uncounted votes has a VotesDue: the transaction of a vote reads the
VotesDue, and writes one if none exists
(test_votes_counted.py::test_a_vote_between_count_and_commit_is_in_this_count_or_the_next).

No matter whether the store commits the vote or a count first, the vote is included in that count or
in the next. A count depends only on the Vote entities, so repeating it counts nothing twice. A
voter counts once, because the key contains the voter's id. At most `limit` voters count per
network, because the transaction of a first vote reads and writes the network's voters. A voter's id
is the caller's author id, which contains no "/" and is in no response. A network is stored for
`KEPT` after its first vote on a comment, but not longer than the comment exists.
"""

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta

from comments import errors
from comments.domain import records
from comments.domain.records import Status
from comments.store import ownership, reads, transactions
from comments.store.models import comment_rows, conversion, schema, vote_rows

COUNT_AFTER = timedelta(
    seconds=10
)  # Minimum time between changes that votes make to a comment's row
KEPT = timedelta(days=30)
AT_ONCE = 200  # Maximum number of votes or networks that one transaction deletes.
MOST_SEATS = 5_000  # Maximum number of voters in one row (140 kB).
UP, DOWN, NONE = 1, -1, 0
_SIGNS = {UP: "+", DOWN: "-"}
OWNER = "votes"


@dataclasses.dataclass(frozen=True, slots=True)
class VoterSeat:
    """A network from which a vote comes, and the voter's entry in the network's row (the seat).

    `network` is a keyed hash of the network and the comment, and `seat` is a keyed hash of the
    voter in that network. The number of voters from this network is limited to `factor` times the
    limit. `is_past` marks hashes under the old secret: an existing row with such a hash still
    counts, but no new row is created with it.
    """

    network: str
    seat: str
    factor: int = 1
    is_past: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class Ballot:
    """A vote to be cast. `value` is UP, DOWN, or NONE to withdraw the vote.

    `places` contains the voter's network and the wider networks around it. `is_claimed` tells
    whether the voter owns the imported comments of an author.
    """

    comment: str
    site: str
    voter: str
    value: int
    places: tuple[VoterSeat, ...]
    is_claimed: Callable[[str], bool] = lambda _: False


@dataclasses.dataclass(frozen=True, slots=True)
class Cast:
    """The writes that cast a ballot.

    `is_first` marks the first vote since the last count, after which the caller must schedule the
    next count.
    """

    writes: ownership.Writes
    is_first: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class PlacedVotes:
    """A voter's votes on a thread's comments. `last` is where to continue, or None at the end."""

    votes: dict[str, int]
    last: tuple[str, str] | None


def cast(ballot: Ballot, *, limit: int, now: datetime) -> Cast:
    """Build the writes of a ballot. If the voter has already cast this vote, there are no writes.

    `limit` is the maximum number of voters per network and comment.

    Raises:
        errors.NotFound: the comment does not exist, or this site's readers do not see it.
        errors.Conflict: the comment was retracted.
        errors.Forbidden: the comment is the voter's own.
        errors.TooMany: too many other voters from this network have voted on the comment.
    """
    row, vote, waiting, *networks = reads.get_multi(
        [
            comment_rows.comment_key(ballot.comment),
            vote_rows.vote_key(ballot.comment, ballot.voter),
            vote_rows.votes_due_key(ballot.comment),
            *(
                vote_rows.voter_network_key(ballot.comment, place.network)
                for place in ballot.places
            ),
        ]
    )
    _check(row, ballot)
    before = NONE if vote is None else vote.value
    if before == ballot.value:
        return Cast(ownership.Writes(OWNER))
    put: list[schema.StoredRow] = []
    gone: list[schema.RowKey] = []
    if ballot.value == NONE:
        gone.append(vote.key)
    else:
        put.append(_row(ballot.comment, row.thread, ballot.voter, ballot.value))
    if NONE in {before, ballot.value}:
        for place, network in _counted_places(ballot, networks):
            seats = _seats(network, ballot, place, limit=limit, now=now)
            if not seats.voters and network is not None:
                gone.append(seats.key)
            elif seats.voters and (network is None or seats.voters != network.voters):
                put.append(seats)
    if waiting is None:
        put.append(_due_row(ballot.comment, row.thread, now + COUNT_AFTER))
    return Cast(ownership.Writes(OWNER, put=tuple(put), delete=tuple(gone)), waiting is None)


def _counted_places(
    ballot: Ballot, networks: list[vote_rows.VoterNetworkRow | None]
) -> Iterator[tuple[VoterSeat, vote_rows.VoterNetworkRow | None]]:
    """Yield the ballot's places with their rows, except `is_past` places without a row."""
    for place, network in zip(ballot.places, networks, strict=True):
        if network is not None or not place.is_past:
            yield place, network


def _check(row: comment_rows.CommentRow | None, ballot: Ballot) -> None:
    is_known = row is not None and row.site == ballot.site
    if row is None or not is_known or (row.status == Status.RETRACTED and not row.listed):
        raise errors.NotFound("comment", ballot.comment)
    if row.status == Status.RETRACTED:
        raise errors.Conflict("comment-retracted")
    # Check the voter before the status, because an error about the status would tell the author
    # that the comment is shadowed.
    if row.author_id == ballot.voter or ballot.is_claimed(row.author_id or ""):
        raise errors.Forbidden("own-comment")
    if row.status != Status.APPROVED:
        # For readers, held and rejected comments do not exist.
        raise errors.NotFound("comment", ballot.comment)


def _row(comment_id: str, thread: str, voter: str, value: int) -> vote_rows.VoteRow:
    return vote_rows.VoteRow(
        key=vote_rows.vote_key(comment_id, voter),
        value=value,
        side=_side(comment_id, value),
        own=_own(voter, thread, value),
        thread=thread,
    )


def import_writes(
    comment_id: str, thread: str, cast: Sequence[tuple[str, int]]
) -> ownership.Writes:
    """Store votes from an export, in the comment's transaction or in an earlier transaction.

    `thread` is the thread's key name, and `cast` contains voters with their votes.
    """
    put = tuple(_row(comment_id, thread, voter, value) for voter, value in cast)
    return ownership.Writes(OWNER, put=put)


def _seats(
    row: vote_rows.VoterNetworkRow | None,
    ballot: Ballot,
    place: VoterSeat,
    *,
    limit: int,
    now: datetime,
) -> vote_rows.VoterNetworkRow:
    """Return a network's row with the ballot's voter added or removed."""
    is_new = row is None or row.due <= now
    voters = [] if row is None or is_new else [seat for seat in row.voters if seat != place.seat]
    due = now + KEPT if row is None or is_new else row.due
    if ballot.value != NONE:
        if len(voters) >= min(limit * place.factor, MOST_SEATS):
            seconds = max(1, int((due - now).total_seconds()))
            raise errors.TooMany("too-many-votes", retry_after=seconds)
        voters.append(place.seat)
    key = vote_rows.voter_network_key(ballot.comment, place.network)
    return vote_rows.VoterNetworkRow(key=key, voters=voters, due=due)


def has(comment_id: str, voter: str) -> bool:
    return reads.get(vote_rows.vote_key(comment_id, voter)) is not None


def count(comment_id: str) -> tuple[int, int]:
    """Count the votes for and against a comment, as of the transaction's moment."""
    up, down = (
        reads.count(reads.Query("Vote", where=(("side", "=", _side(comment_id, value)),)))
        for value in (UP, DOWN)
    )
    return up, down


def is_waiting(comment_id: str) -> bool:
    """Return whether a comment may have uncounted votes."""
    return reads.get(vote_rows.votes_due_key(comment_id)) is not None


def counted_mark_writes(comment_id: str) -> ownership.Writes:
    """Mark a comment's votes as counted, in the transaction that counts them."""
    return ownership.Writes(OWNER, delete=(vote_rows.votes_due_key(comment_id),))


def scheduled_deletion_writes(
    comment_id: str, name: records.ThreadName, *, now: datetime
) -> ownership.Writes:
    """Schedule the deletion of a comment's votes, in the transaction that retracts the comment.

    A comment may have many votes, so the next count deletes them.
    """
    put = (_due_row(comment_id, comment_rows.thread_key_name(name), now),)
    return ownership.Writes(OWNER, put=put)


def deletion_writes(comment_id: str) -> ownership.Writes:
    """Delete a comment's votes and its voters' networks, up to the limit of one transaction."""
    gone = [
        vote_rows.key_of(message)
        for kind in ("Vote", "VoterNetwork")
        for message in reads.fetch(
            reads.Query(
                kind, ancestor=comment_rows.comment_key(comment_id), limit=AT_ONCE, keys_only=True
            )
        )
    ]
    return ownership.Writes(OWNER, delete=tuple(gone))


def due_comments(now: datetime, limit: int) -> list[str]:
    """Return the ids of comments whose votes must be counted now, longest overdue first."""
    return reads.names("VotesDue", (("due", "<=", now),), order=("due",), limit=limit)


def expired_networks(now: datetime) -> list[schema.RowKey]:
    """Return networks whose retention time has ended, up to the limit of one transaction."""
    query = reads.Query(
        "VoterNetwork", where=(("due", "<=", now),), order=("due",), limit=AT_ONCE, keys_only=True
    )
    return [vote_rows.key_of(message) for message in reads.fetch(query)]


def network_deletion_writes(networks: list[schema.RowKey], *, now: datetime) -> ownership.Writes:
    """Delete these networks, except networks whose retention time has been extended."""
    rows = reads.get_multi(networks)
    gone = tuple(row.key for row in rows if row is not None and row.due <= now)
    return ownership.Writes(OWNER, delete=gone)


def uncounted_sums(comment_ids: Sequence[str]) -> dict[str, int]:
    """Return the sum of each comment's votes minus its score, unless both are equal.

    The votes and the scores are from the same moment. Both the score and the sum include imported
    votes.
    """

    def read() -> dict[str, int]:
        rows = reads.get_multi([comment_rows.comment_key(comment_id) for comment_id in comment_ids])
        shown = [row for row in rows if row is not None and row.status == Status.APPROVED]
        return {row.key.id(): _uncounted_sum(row) for row in shown}

    sums = transactions.at_one_moment(read) if comment_ids else {}
    return {comment_id: number for comment_id, number in sums.items() if number}


def _uncounted_sum(row: comment_rows.CommentRow) -> int:
    up, down = count(row.key.id())
    return (up - down) - ((row.cast_up or 0) - (row.cast_down or 0))


def votes_of(
    name: records.ThreadName, voter: str, *, after: tuple[str, str] | None, limit: int
) -> PlacedVotes:
    """List a voter's votes on a thread's comments, in at most two keys-only queries.

    `after` is the position at which an earlier call ended: a sign and a comment.
    """
    pairs: list[tuple[str, str]] = []
    for value, sign in _SIGNS.items():
        if after is not None and sign < after[0]:
            continue
        start = after[1] if after is not None and sign == after[0] else ""
        left = limit + 1 - len(pairs)
        if left:
            pairs += ((sign, comment_id) for comment_id in _on(name, voter, value, start, left))
    more = len(pairs) > limit
    values = {sign: value for value, sign in _SIGNS.items()}
    return PlacedVotes(
        {comment: values[sign] for sign, comment in pairs[:limit]},
        pairs[limit - 1] if more else None,
    )


def _on(name: records.ThreadName, voter: str, value: int, after: str, limit: int) -> Iterator[str]:
    own = _own(voter, comment_rows.thread_key_name(name), value)
    behind = (("__key__", ">", vote_rows.vote_key(after, voter)),) if after else ()
    where = (("own", "=", own), *behind)
    query = reads.Query("Vote", where=where, order=("__key__",), limit=limit, keys_only=True)
    for message in reads.fetch(query):
        yield message.key.path[0].name


def by(voter: str, site: str | None = None) -> Iterator[tuple[str, int]]:
    """Yield a voter's votes, on one site or on all sites, as comment ids and values."""
    # In `votes_of`, the voter's id is followed by "/", and the site's id by "/" or "#"
    # (`comment_rows.thread_key_name`).
    starts = [f"{voter}/"] if site is None else [f"{voter}/{site}#", f"{voter}/{site}/"]
    for value, sign in _SIGNS.items():
        for start in starts:
            behind = f"{start[:-1]}{chr(ord(start[-1]) + 1)}"
            where = [("own", ">=", f"{sign}{start}"), ("own", "<", f"{sign}{behind}")]
            query = reads.Query("Vote", where=where, order=("own",), keys_only=True)
            for message in reads.fetch(query):
                yield message.key.path[0].name, value


def withdrawal_writes(comment_id: str, voter: str, *, now: datetime) -> ownership.Writes:
    """Withdraw a vote in a transaction, regardless of the comment's status."""
    key, due = vote_rows.vote_key(comment_id, voter), vote_rows.votes_due_key(comment_id)
    vote, waiting = reads.get_multi([key, due])
    if vote is None:
        return ownership.Writes(OWNER)
    put = () if waiting else (_due_row(comment_id, vote.thread, now + COUNT_AFTER),)
    return ownership.Writes(OWNER, put=put, delete=(key,))


def of_thread(name: records.ThreadName) -> dict[str, tuple[int, int]]:
    """For a recount, count the votes for and against each comment of a thread in one query."""
    cast = {comment: [*votes.values()] for comment, votes in by_comment(name).items()}
    return {comment: (values.count(UP), values.count(DOWN)) for comment, values in cast.items()}


def by_comment(name: records.ThreadName) -> dict[str, dict[str, int]]:
    """For an export, return the votes on each comment of a thread, by voter, in one query."""
    where = (("thread", "=", comment_rows.thread_key_name(name)),)
    query = reads.Query("Vote", where=where, order=("side",), projection=("side",))
    values = {sign: value for value, sign in _SIGNS.items()}
    cast: dict[str, dict[str, int]] = {}
    for message in reads.fetch(query):
        side = message.properties["side"].string_value
        cast.setdefault(side[:-1], {})[message.key.path[-1].name] = values[side[-1]]
    return cast


def transfer_writes(thread: str, targets: Mapping[str, str]) -> ownership.Writes:
    """Move the votes on comments that move from a thread to others, in the same transaction.

    `thread` is the key name of the thread, and `targets` contains those of the other threads by the
    ids of the comments.
    """
    where = (("thread", "=", thread),)
    put: list[schema.StoredRow] = []
    for message in reads.fetch(reads.Query("Vote", where=where)):
        comment_id, voter = (step.name for step in message.key.path)
        if comment_id in targets:
            value = message.properties["value"].integer_value
            put.append(_row(comment_id, targets[comment_id], voter, value))
    for message in reads.fetch(reads.Query("VotesDue", where=where)):
        comment_id, due = message.key.path[-1].name, conversion.stored_time(message, "due")
        if comment_id in targets and due is not None:
            put.append(_due_row(comment_id, targets[comment_id], due))
    return ownership.Writes(OWNER, put=tuple(put))


def waiting_comments(name: records.ThreadName) -> set[str]:
    """Return the ids of a thread's comments that may have uncounted votes."""
    return set(reads.names("VotesDue", (("thread", "=", comment_rows.thread_key_name(name)),)))


def _due_row(comment_id: str, thread: str, moment: datetime) -> vote_rows.VotesDueRow:
    return vote_rows.VotesDueRow(key=vote_rows.votes_due_key(comment_id), thread=thread, due=moment)


def _side(comment_id: str, value: int) -> str:
    return f"{comment_id}{_SIGNS[value]}"


def _own(voter: str, thread: str, value: int) -> str:
    return f"{_SIGNS[value]}{voter}/{thread}"
