"""What people do with votes: cast one, take it back, see their own; and how the row gets to know.

Owns the way from a caller to one transaction, see `votes`, and the transaction that counts. Who
votes is whoever the caller is known as: the author's id for who has posted, and for who has not a
new one, which the answer gives him a token for. New ones cost nothing, so what a script can do
with many is bounded by its network (`networks`), in the store and so for all processes together.

Counting is left to `scheduler`: this process is told when a vote is the first since the last count,
and what it forgets is found by `waiting`.
"""

import dataclasses
import functools
import secrets
from collections.abc import Callable, Sequence
from datetime import datetime

from google.cloud import ndb

from comments import errors
from comments.domain import records
from comments.domain.crypto import client_networks, cursors, keyed_hashes, secret_rotation
from comments.events import backlog
from comments.sites import proof_policy
from comments.sites.site_request import SiteRequest
from comments.store import transactions
from comments.tree import changes, values, votes

MOST_OWN = 1000  # votes in one answer
_AT_ONCE = 1000  # comments that one look finds


@dataclasses.dataclass(frozen=True, slots=True)
class OwnVotes:
    """A voter's votes on comments of a thread, by comment; `cursor` continues them."""

    votes: dict[str, int]
    cursor: str | None


def newcomer(comment_id: str, proof: str, key: str | None, request: SiteRequest) -> str:
    """An id for somebody without a token; the same for a repeat of what came along.

    It is made of the proof of work where the site asks for one. Else it is made of the idempotency
    key, and of the network too: the same key from elsewhere must not lead to somebody's id.

    Raises:
        errors.Forbidden: the proof is missing or not good, see `proof_policy.check`.
    """
    proved = proof_policy.person(proof, request, proof_policy.Purpose.VOTE)
    if proved is not None:
        return proved
    if key is None:
        return f"g:{keyed_hashes.text(secrets.token_bytes(16))}"
    secret, network = request.settings.secret, request.sender.network
    made = keyed_hashes.every(secret, "voter", comment_id, network, key)
    current, *before = (f"g:{keyed_hashes.text(each)}" for each in made)
    return next((each for each in before if votes.has(comment_id, each)), current)


def vote(comment_id: str, voter: str, value: int, request: SiteRequest) -> None:
    """Have a voter, by his id, vote on a comment of a site; `votes.NONE` takes the vote back.

    Raises:
        errors.NotFound, errors.Conflict, errors.Forbidden, errors.TooMany: see `votes.cast`.
        errors.Overloaded: the store did not answer in time; a repeat is safe.
    """
    network, settings, now = request.sender.network, request.settings, request.now
    around = ((network, 1), *client_networks.around(network))
    places = tuple(
        _place(comment_id, voter, *each, secret, is_past=number > 0)
        for number, secret in enumerate(secret_rotation.accepted(settings.secret))
        for each in around
    )
    ballot = votes.Ballot(comment_id, request.site.id, voter, value, places)
    firsts: list[bool] = []

    def body() -> None:
        cast = votes.cast(ballot, limit=settings.voters_per_network, now=now)
        # Also of a run whose answer was lost: the next one finds the vote there.
        firsts.append(cast.is_first)
        if cast.writes.keys:
            transactions.apply(cast.writes)

    # Those of one network meet at its row, and a voter always comes from one.
    transactions.transaction(body, line=f"votes/{places[len(around) - 1].network}")
    if any(firsts):
        backlog.voted(records.VotedComment(comment_id))


def _place(
    comment_id: str, voter: str, network: str, factor: int, secret: str, *, is_past: bool
) -> votes.Place:
    what = f"votes/{comment_id}"
    return votes.Place(
        network=client_networks.digest(secret, what, network),
        seat=client_networks.digest(secret, f"{what}/{network}", voter),
        factor=factor,
        is_past=is_past,
    )


def own(
    name: records.ThreadName, voter_id: str, *, limit: int, cursor: str | None, secret: str
) -> OwnVotes:
    """A voter's votes on comments of a thread.

    Raises:
        errors.BadInput: a limit outside 1 .. `MOST_OWN`.
        errors.BadCursor: a cursor of another listing or voter, or none of ours.
    """
    if not 1 <= limit <= MOST_OWN:
        raise errors.BadInput("limit", f"is not 1 to {MOST_OWN}")
    listing = cursors.label("votes", name.site, name.id, voter_id)
    after = None
    if cursor is not None:
        sign, comment_id = cursors.unseal(cursor, listing, secret)
        after = (sign, comment_id)
    found = votes.own(name, voter_id, after=after, limit=limit)
    return OwnVotes(
        found.votes, None if found.last is None else cursors.seal(found.last, listing, secret)
    )


def count(comment_id: str, *, now: datetime) -> None:
    """Have a comment's row say how many vote for and against it, if it may not.

    Votes on a comment that was retracted, or is gone, are deleted instead.
    """
    _until_done(lambda: _count(comment_id, now) if votes.waits(comment_id) else _DONE)


def mend(comment_id: str, *, now: datetime) -> None:
    """Count the votes on a comment anew, whether or not some wait to be counted."""
    _until_done(lambda: _count(comment_id, now))


@dataclasses.dataclass(frozen=True, slots=True)
class _Step:
    """What one transaction did: a change of the comment's row, or some of what has to be done."""

    is_last: bool
    change: values.Change | None = None


_DONE = _Step(is_last=True)


def _until_done(body: Callable[[], _Step]) -> None:
    step = transactions.transaction(body)
    while not step.is_last:
        step = transactions.transaction(body)
    if step.change is not None and step.change.event:
        comment = step.change.comment
        backlog.tell(step.change.event)
        backlog.changed(records.ThreadName(comment.site, comment.thread))


def _count(comment_id: str, now: datetime) -> _Step:
    try:
        change = changes.count_votes(comment_id, votes.count(comment_id), now=now)
    except errors.NotFound:
        return _forget(comment_id)
    if change.comment.status is records.Status.RETRACTED:
        return _forget(comment_id)
    transactions.apply(*change.writes, votes.counted(comment_id))
    return _Step(is_last=True, change=change)


def _forget(comment_id: str) -> _Step:
    """Delete votes: as many as one transaction takes, and in the last one that they are due."""
    forgotten = votes.forgotten(comment_id)
    transactions.apply(forgotten if forgotten.keys else votes.counted(comment_id))
    return _Step(is_last=not forgotten.keys)


def waiting(now: datetime) -> Sequence[records.VotedComment]:
    """Comments whose votes nobody has counted in time; a bounded number of them."""
    return [records.VotedComment(comment_id) for comment_id in votes.due(now, _AT_ONCE)]


def expire(now: datetime) -> int:
    """Forget the networks that were remembered long enough; how many."""
    number = 0
    while found := votes.expired(now):
        transactions.transaction(functools.partial(_forget_networks, found, now))
        number += len(found)
    return number


def _forget_networks(found: list[ndb.Key], now: datetime) -> None:
    transactions.apply(votes.without(found, now=now))
