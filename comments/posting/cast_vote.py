"""Cast, withdraw, list and count votes on comments.

This module owns two transactions: one casts a vote (`tree.votes`), and the other counts a comment's
votes and stores the numbers in the comment's row. The voter id is the caller's author id; a
first-time caller gets a new id and, in the response, a token for it. Anyone can get new ids, so the
number of voters per network is limited (`client_networks`). The limit applies across all processes,
because the voters are counted in the store.

`scheduler` starts the counting. The first vote after a count adds the comment to this process's
backlog. If the process stops before it counts the votes, `waiting_comments` finds the comment
later.
"""

import dataclasses
import functools
import secrets
from collections.abc import Callable, Container, Sequence
from datetime import datetime

from comments import errors
from comments.domain import records
from comments.domain.crypto import client_networks, cursors, keyed_hashes, secret_rotation
from comments.events import backlog
from comments.limits import proof_policy
from comments.limits.site_request import SiteRequest
from comments.moderation.policy import author_links
from comments.store import transactions
from comments.store.models import schema
from comments.tree import changes, values, votes

MOST_OWN = 1000  # Maximum number of votes in one response.
MOST_UNCOUNTED = 20  # Maximum number of comments in one response; each comment costs three reads.
_AT_ONCE = 1000  # Maximum number of comments that one call of `waiting_comments` returns.


@dataclasses.dataclass(frozen=True, slots=True)
class OwnVotesPage:
    """A voter's votes on a thread's comments, by comment id. `cursor` leads to the next page.

    `uncounted` contains the sums of recent votes that the comments' scores do not include yet
    (`votes.uncounted_sums`).
    """

    votes: dict[str, int]
    cursor: str | None
    uncounted: dict[str, int]


def newcomer_id(comment_id: str, proof: str, key: str | None, request: SiteRequest) -> str:
    """Return a voter id for a caller without a token. A retried request gets the same id.

    Raises:
        errors.Forbidden: the site's options allow no votes, or the proof is missing or not valid;
            see `proof_policy.check`.
    """
    _check_options(request)
    # If the site requires a proof of work, the id is derived from the proof; otherwise, the id is
    # derived from the idempotency key and the network. The network is included so that a caller on
    # a different network cannot get this voter's id with the same key.
    proved = proof_policy.person(proof, request, proof_policy.ChallengePurpose.VOTE)
    if proved is not None:
        return proved
    if key is None:
        return f"g:{keyed_hashes.text(secrets.token_bytes(16))}"
    secret, network = request.settings.secret, request.sender.network
    made = keyed_hashes.every(secret, "voter", comment_id, network, key)
    current, *before = (f"g:{keyed_hashes.text(digest)}" for digest in made)
    return next((voter for voter in before if votes.has(comment_id, voter)), current)


def vote(comment_id: str, voter: str, value: int, request: SiteRequest) -> None:
    """Cast a vote on a comment. The value `votes.NONE` withdraws the vote.

    Raises:
        errors.Forbidden: the site's options allow no votes. Votes can still be withdrawn.
        errors.NotFound, errors.Conflict, errors.Forbidden, errors.TooMany: see `votes.cast`.
        errors.Overloaded: the store did not answer in time; retrying is safe.
    """
    if value != votes.NONE:
        _check_options(request)
    network, settings, now = request.sender.network, request.settings, request.now
    around = ((network, 1), *client_networks.around(network))
    places = tuple(
        _place(comment_id, voter, *area, secret, is_past=number > 0)
        for number, secret in enumerate(secret_rotation.accepted_secrets(settings.secret))
        for area in around
    )
    site = request.site.id
    ballot = votes.Ballot(
        comment_id, site, voter, value, places,
        lambda author: author_links.is_claimed(site, author, voter),
    )  # fmt: skip
    firsts: list[bool] = []

    def body() -> None:
        cast = votes.cast(ballot, limit=settings.voters_per_network, now=now)
        # Collect the results of all runs. If a commit succeeds but its response is lost, the next
        # run finds the vote already stored. It then no longer reports the vote as the comment's
        # first uncounted vote.
        firsts.append(cast.is_first)
        if cast.writes.keys:
            transactions.apply(cast.writes)

    # Votes from one network conflict on the network's row, so they take turns within the process.
    transactions.transaction(body, line=f"votes/{places[len(around) - 1].network}")
    if any(firsts):
        backlog.note_vote(records.VotedComment(comment_id))


def _check_options(request: SiteRequest) -> None:
    if not request.site.options.votes:
        raise errors.Forbidden("votes-off")


def _place(
    comment_id: str, voter: str, network: str, factor: int, secret: str, *, is_past: bool
) -> votes.VoterSeat:
    what = f"votes/{comment_id}"
    return votes.VoterSeat(
        network=client_networks.digest(secret, what, network),
        seat=client_networks.digest(secret, f"{what}/{network}", voter),
        factor=factor,
        is_past=is_past,
    )


def own_votes(
    name: records.ThreadName, voter_id: str, *, limit: int, cursor: str | None, secret: str
) -> OwnVotesPage:
    """List a voter's votes on a thread's comments.

    Raises:
        errors.BadInput: the limit is outside 1 to `MOST_OWN`.
        errors.BadCursor: the cursor belongs to a different listing or voter, or is not valid.
    """
    if not 1 <= limit <= MOST_OWN:
        raise errors.BadInput("limit", "out-of-range", minimum=1, maximum=MOST_OWN)
    listing = cursors.label("votes", name.site, name.id, voter_id)
    after = None
    if cursor is not None:
        sign, comment_id = cursors.unseal(cursor, listing, secret)
        after = (sign, comment_id)
    mine = votes.votes_of(name, voter_id, after=after, limit=limit)
    last = None if mine.last is None else cursors.seal(mine.last, listing, secret)
    return OwnVotesPage(mine.votes, last, {} if after else _uncounted_sums(name, mine.votes))


def _uncounted_sums(name: records.ThreadName, mine: Container[str]) -> dict[str, int]:
    """Return a thread's uncounted votes by comment, starting with comments that the voter voted on.

    Other comments are included, because the voter may have withdrawn a vote that is still counted.
    """
    waiting = sorted(votes.waiting_comments(name), key=lambda each: (each not in mine, each))
    return votes.uncounted_sums(waiting[:MOST_UNCOUNTED])


def count(comment_id: str, *, now: datetime) -> None:
    """If a comment has uncounted votes, count its votes and store the numbers in its row.

    If the comment is retracted or missing, delete its votes instead.
    """
    _until_done(lambda: _count(comment_id, now) if votes.is_waiting(comment_id) else _DONE)


def mend(comment_id: str, *, now: datetime) -> None:
    """Recount the votes on a comment, even if all of them are counted."""
    _until_done(lambda: _count(comment_id, now))


@dataclasses.dataclass(frozen=True, slots=True)
class _Step:
    """The result of one transaction: a change to the comment's row, or a batch of deletions."""

    is_last: bool
    change: values.ChangeResult | None = None


_DONE = _Step(is_last=True)


def _until_done(body: Callable[[], _Step]) -> None:
    step = transactions.transaction(body)
    while not step.is_last:
        step = transactions.transaction(body)
    if step.change is not None and step.change.event:
        comment = step.change.comment
        backlog.tell(step.change.event)
        backlog.note_changes(records.ThreadName(comment.site, comment.thread))


def _count(comment_id: str, now: datetime) -> _Step:
    try:
        change = changes.count_votes(comment_id, votes.count(comment_id), now=now)
    except errors.NotFound:
        return _forget(comment_id)
    if change.comment.status is records.Status.RETRACTED:
        return _forget(comment_id)
    transactions.apply(*change.writes, votes.counted_mark_writes(comment_id))
    return _Step(is_last=True, change=change)


def _forget(comment_id: str) -> _Step:
    """Delete a batch of a comment's votes. If no votes are left, mark the comment as counted."""
    forgotten = votes.deletion_writes(comment_id)
    transactions.apply(forgotten if forgotten.keys else votes.counted_mark_writes(comment_id))
    return _Step(is_last=not forgotten.keys)


def waiting_comments(now: datetime) -> Sequence[records.VotedComment]:
    """Return at most `_AT_ONCE` comments with votes that are due for counting."""
    return [records.VotedComment(comment_id) for comment_id in votes.due_comments(now, _AT_ONCE)]


def expire(now: datetime) -> int:
    """Delete voters' networks whose retention time has ended, and return their number."""
    number = 0
    while keys := votes.expired_networks(now):
        transactions.transaction(functools.partial(_forget_networks, keys, now))
        number += len(keys)
    return number


def _forget_networks(keys: list[schema.RowKey], now: datetime) -> None:
    transactions.apply(votes.network_deletion_writes(keys, now=now))
