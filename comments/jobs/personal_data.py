"""What this service holds of somebody: all of it as one value, and its erasure.

Owns what counts as an author's: his comments, his votes, the mail he is told by, and the account he
signs in with. Everything is found by his author id, which leaves the server in no public answer: so
whoever asks has shown a token of his, or runs commands.

What must stay true:

- Nothing is given of others: of a comment he answered there is the id, of its author nothing.
- To erase is what he could do himself, comment by comment: texts and names go, places stay, so
  threads stay whole. Interrupted, it is taken up again by asking again; done, it finds nothing.
- What a site's token asks for is of that site: the page it was made on may hold it, and an account
  may write on many. So nothing of another site is given or erased, and an account that has
  something elsewhere stays.
- The account's address and those of subscriptions are not given out, only that there are some.
- By a token, what became of a comment is what its author is shown otherwise
  (`presentation.seeming`): else whoever is in the shadow would find out by asking. An operator is
  told what is so.
"""

import itertools
from collections.abc import Iterator
from datetime import datetime
from typing import NamedTuple

import msgspec

from comments import errors
from comments.accounts import accounts
from comments.domain import presentation, records
from comments.domain.crypto import guest_addresses
from comments.events import backlog
from comments.notifications import subscriptions
from comments.posting import own_comment
from comments.store import reads, transactions
from comments.store.models import comment_rows, conversion
from comments.tree import votes

AT_ONCE = 100  # comments, and votes, of one step of an erasure


class Writing(msgspec.Struct, frozen=True):
    """A comment of his, as he wrote it; `status` says what became of it, as far as he is told."""

    id: str
    site: str
    thread: str
    reply_to: str | None
    status: records.Status
    created: datetime
    edited: datetime | None
    name: str
    website: str
    email: str
    body: str
    score: int


class Profile(msgspec.Struct, frozen=True):
    """The account he signs in with; `login` is for operators alone, and empty by a token."""

    name: str
    login: str
    since: datetime


class Everything(msgspec.Struct, frozen=True):
    """What is held of somebody. `mailed` is how many subscriptions are his."""

    account: Profile | None
    comments: list[Writing]
    votes: dict[str, int]
    mailed: int


class Erased(NamedTuple):
    """What a step of an erasure did, and whether it was the last."""

    comments: int
    votes: int
    is_done: bool


def export(author: str, site: str | None = None, *, secret: str, now: datetime) -> Everything:
    """All that is held of an author: on all sites as it is, or on one as he may see it."""
    account = accounts.get(_account_of(author))
    login = "" if account is None or site is not None else account.login
    written = list(_writings(author))
    written = [
        msgspec.structs.replace(each, email=guest_addresses.address(each.email, secret, now=now))
        for each in written
    ]
    mine = [_as_told(each) for each in written if each.site == site]
    chosen = {each.site for each in written} if site is None else {site}
    return Everything(
        account=None if account is None else Profile(account.name, login, account.created),
        comments=written if site is None else mine,
        votes=dict(votes.by(author, site)),
        mailed=sum(len(subscriptions.of_author(each, author)[0]) for each in chosen),
    )


def erase(author: str, *, now: datetime, site: str | None = None) -> Erased:
    """Erase what is held of an author: a step, of which there are more until it `is_done`.

    With `site` it is what a token of that site can reach; the account goes if nothing else is left
    of it. One that holds a role is not erased so: it is removed by whoever gave the role (`account
    remove`).

    Raises:
        errors.Conflict: the account holds a role.
        errors.Overloaded: the store did not answer in time; a repeat goes on.
    """
    account = accounts.get(_account_of(author))
    if account is not None and account.grants:
        raise errors.Conflict("an account with a role is removed by an owner", code="has-role")
    written = list(_writings(author))
    found = [each for each in written if site is None or each.site == site]
    for each in found[:AT_ONCE]:
        own_comment.retract(each.id, author_id=author, revision=None, now=now)
    cast = list(itertools.islice(votes.by(author, site), AT_ONCE + 1))
    for comment_id, _ in cast[:AT_ONCE]:
        _withdraw(comment_id, author, now)
    for name in {each.site for each in found} if site is None else {site}:
        subscriptions.end_of(name, author, now=now)
    is_done = max(len(found), len(cast)) <= AT_ONCE
    if is_done and account is not None and len(written) == len(found) and not any(votes.by(author)):
        accounts.remove(account.id)
    return Erased(min(len(found), AT_ONCE), min(len(cast), AT_ONCE), is_done)


def author_of(comment_id: str) -> str:
    """The id of a comment's author, for commands.

    Raises:
        errors.NotFound: there is no such comment, or nobody is known to have written it.
    """
    row = (
        reads.get(comment_rows.comment_key(comment_id))
        if comment_rows.is_comment_id(comment_id)
        else None
    )
    if row is None or not row.author_id:
        raise errors.NotFound("author", comment_id)
    return str(row.author_id)


def _as_told(writing: Writing) -> Writing:
    return msgspec.structs.replace(writing, status=presentation.seeming(writing.status))


def _account_of(author: str) -> str:
    is_account = author.startswith(accounts.AUTHOR)
    return author.removeprefix(accounts.AUTHOR) if is_account else ""


def _writings(author: str) -> Iterator[Writing]:
    if not author:
        return  # what was taken back has no author, and is nobody's
    query = reads.Query("Comment", where=[("author_id", "=", author)])
    for entity in reads.fetch(query):
        row = conversion.comment_from_message(entity)
        yield Writing(
            id=row.id,
            site=row.site,
            thread=row.thread,
            reply_to=row.reply_to,
            status=row.status,
            created=row.created,
            edited=row.edited,
            name=row.author.name,
            website=row.author.website,
            email=row.author.email,
            body=row.body,
            score=row.score,
        )


def _withdraw(comment_id: str, author: str, now: datetime) -> None:
    def body() -> None:
        transactions.apply(votes.withdrawn(comment_id, author, now=now))

    transactions.transaction(body)
    backlog.voted(records.VotedComment(comment_id))
