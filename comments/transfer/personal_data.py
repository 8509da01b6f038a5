"""Export and erase all data about an author.

An author's data consists of their comments, votes, mail subscriptions, followed threads, inbox and
account. The author id is the key to all of this data. No public response contains author ids, so a
caller must present the author's token or run commands as an operator.

Invariant: For a caller with a token, each comment has the status that its author normally sees
(`presentation.status_for_author`), so an export reveals no shadow ban
(test_personal_data.py::test_an_export_by_token_hides_shadow_bans_and_an_operators_shows_them).

An export contains nothing about other people. For a reply, it contains the id of the comment that
the author replied to, but nothing about that comment's author. The export contains the mail
addresses that the author entered with comments, but no other addresses; subscribed addresses are
only counted. Erasure erases the text and the name of a comment but keeps its position, so threads
stay intact. Repeating an interrupted erasure continues it.

An author's data includes the data of further author ids: for a caller with a token, the comments
that were imported under the address that the author proved; for an operator, also all ids that
moderators have linked with the author's (`author_links`), each on the sites of its links.

A site token gives access only to data on that site. The reason is that the site's page may know the
token, while an account may write on many sites. With such a token, data on other sites is neither
exported nor erased, and an account with such data is kept.
"""

import itertools
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import NamedTuple

import msgspec

from comments import errors
from comments.accounts import accounts
from comments.domain import presentation, records
from comments.domain.crypto import guest_addresses
from comments.domain.ids import author_ids
from comments.events import backlog
from comments.moderation.policy import author_links
from comments.notifications import inbox, reader_follows, subscriptions
from comments.posting import own_comment
from comments.sites import site_settings
from comments.store import reads, transactions
from comments.store.models import comment_rows, conversion
from comments.threads import thread_info
from comments.tree import changes, votes

AT_ONCE = 100  # Maximum number of comments, and also of votes, per step of an erasure.


class Writing(msgspec.Struct, frozen=True):
    """A comment as its author wrote it.

    For a caller with a token, `status` is the status that the author normally sees.
    """

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
    """The author's account.

    `login` is only for operators; it is empty for a caller with a token.
    """

    name: str
    login: str
    since: datetime


class OwnFollow(msgspec.Struct, frozen=True):
    """A thread that the author follows without mail.

    `shown_name` is the name under which the site's staff see it; if it is empty, they do not.
    """

    site: str
    thread: str
    since: datetime | None
    shown_name: str


class Everything(msgspec.Struct, frozen=True):
    """All data about an author.

    `mailed` is the number of mail addresses that the author subscribed; an address counts once per
    site. `follows` contains the threads that the author follows without mail, and `inbox` the ids
    of unread replies to the author's comments.
    """

    account: Profile | None
    comments: list[Writing]
    votes: dict[str, int]
    mailed: int
    follows: list[OwnFollow]
    inbox: list[str]


class ErasureStep(NamedTuple):
    """The work of one step of an erasure: how much it deleted, and whether it was the last step."""

    comments: int
    votes: int
    is_done: bool


def export(author: str, site: str | None = None, *, secret: str, now: datetime) -> Everything:
    """Collect an author's data.

    With `site`, collect only the data on that site, as the author sees it; without `site`, collect
    all data, for an operator.
    """
    everything = _export_id(author, site, is_operator=site is None, secret=secret, now=now)
    for other, place in _other_ids(author, site):
        more = _export_id(other, place, is_operator=site is None, secret=secret, now=now)
        everything.votes.update(more.votes)
        everything = msgspec.structs.replace(
            everything,
            comments=everything.comments + more.comments,
            mailed=everything.mailed + more.mailed,
            follows=everything.follows + more.follows,
            inbox=everything.inbox + more.inbox,
        )
    return everything


def _export_id(
    author: str, site: str | None, *, is_operator: bool, secret: str, now: datetime
) -> Everything:
    account = accounts.get(_account_of(author))
    login = "" if account is None or site is not None else account.login
    written, followed = list(_writings(author)), list(reader_follows.of_author(author, site))
    names = [records.ThreadName(writing.site, writing.thread) for writing in written]
    shown = _shown_ids([*names, *(follow.name for follow in followed)])
    written = [
        msgspec.structs.replace(
            writing,
            thread=shown[records.ThreadName(writing.site, writing.thread)],
            email=guest_addresses.address(writing.email, secret, now=now),
        )
        for writing in written
    ]
    if site is not None:
        written = [writing for writing in written if writing.site == site]
    if not is_operator:
        written = [_as_author_sees(writing) for writing in written]
    sites = _sites(site)
    unread = (comment_id for name in sites for comment_id in inbox.comments_in(name, author))
    return Everything(
        account=None if account is None else Profile(account.name, login, account.created),
        comments=written,
        votes=dict(votes.by(author, site)),
        mailed=sum(len(subscriptions.of_author(name, author)[0]) for name in sites),
        follows=[
            OwnFollow(follow.name.site, shown[follow.name], follow.since, follow.shown_name)
            for follow in followed
        ],
        inbox=list(unread),
    )


def erase(author: str, *, now: datetime, site: str | None = None) -> ErasureStep:
    """Erase an author's data, one step per call; repeat the call until `is_done`.

    With `site`, erase only the data to which a token for that site gives access. The account is
    deleted if no data of the author remains. An account with a role is not erased here; an owner
    must remove it (`account remove`).

    Raises:
        errors.Conflict: the account, or a linked account, has a role.
        errors.Overloaded: the store did not respond in time; repeating the call continues the
            erasure.
    """
    others = list(_other_ids(author, site))
    for one in (author, *(other for other, _ in others)):
        account = accounts.get(_account_of(one))
        if account is not None and account.grants:
            raise errors.Conflict("has-role")
    comments = cast = 0
    for other, place in others:
        step = _erase_id(other, place, now)
        comments, cast = comments + step.comments, cast + step.votes
        if not step.is_done:
            return ErasureStep(comments, cast, is_done=False)
    # Before the account, because a reader without an account could not repeat the call.
    for other, place in others:
        author_links.erase(other, place)
    author_links.erase(author, site)
    step = _erase_id(author, site, now)
    return ErasureStep(comments + step.comments, cast + step.votes, step.is_done)


def _erase_id(author: str, site: str | None, now: datetime) -> ErasureStep:
    account = accounts.get(_account_of(author))
    written = list(_writings(author))
    writings = [writing for writing in written if site is None or writing.site == site]
    for writing in writings[:AT_ONCE]:
        own_comment.retract(writing.id, author_id=author, revision=None, now=now)
    cast = list(itertools.islice(votes.by(author, site), AT_ONCE + 1))
    for comment_id, _ in cast[:AT_ONCE]:
        _withdraw(comment_id, author, now)
    for name in _sites(site):
        subscriptions.end_of(name, author, now=now)
    followed = _unfollow(author, site, now)
    is_done = max(len(writings), len(cast), followed) <= AT_ONCE
    if is_done:  # Last, because replies to the remaining comments would fill the inbox again
        for name in _sites(site):
            inbox.erase(name, author)
    if is_done and account is not None and len(written) == len(writings) and not _is_known(author):
        accounts.remove(account.id)
    return ErasureStep(min(len(writings), AT_ONCE), min(len(cast), AT_ONCE), is_done)


def find_author(who: str, *, secret: str) -> str:
    """Return the id of an author whom a person with access to all data names.

    `who` is an author id, an account's name, mail address or id, or the id of a comment, because
    people who ask about their data can usually name a comment.

    Raises:
        errors.NotFound: there is no such author.
    """
    if author_ids.is_one(who):
        return who
    try:
        return accounts.by_text(who, secret).author
    except errors.NotFound:
        if not comment_rows.is_comment_id(who):
            raise
        return author_of(who)


def author_of(comment_id: str) -> str:
    """Return a comment's author id. Only operators and owners of the service may know it.

    Raises:
        errors.NotFound: the comment does not exist, or its author is unknown.
    """
    row = (
        reads.get(comment_rows.comment_key(comment_id))
        if comment_rows.is_comment_id(comment_id)
        else None
    )
    if row is None or not row.author_id:
        raise errors.NotFound("author", comment_id)
    return str(row.author_id)


def _other_ids(author: str, site: str | None) -> Iterator[tuple[str, str]]:
    """Yield the other author ids whose data belongs to an author, each with the site."""
    if site is not None:
        for other in author_links.claimed_authors(site, author):
            yield other, site
        return
    for place in sorted({link.site for link in author_links.of_author(author)}):
        for other in author_links.person(place, author)[1:]:
            yield other, place


def _sites(site: str | None) -> list[str]:
    return [website.id for website in site_settings.every_kept()] if site is None else [site]


def _shown_ids(names: Iterable[records.ThreadName]) -> dict[records.ThreadName, str]:
    """Return the current ids of threads."""
    shown: dict[records.ThreadName, str] = {}
    rest = iter(dict.fromkeys(names))
    while part := list(itertools.islice(rest, AT_ONCE)):
        for name, thread in zip(part, thread_info.get_many(part), strict=True):
            shown[name] = name.id if thread is None else thread.shown_id
    return shown


def _as_author_sees(writing: Writing) -> Writing:
    return msgspec.structs.replace(writing, status=presentation.status_for_author(writing.status))


def _account_of(author: str) -> str:
    is_account = author.startswith(accounts.AUTHOR)
    return author.removeprefix(accounts.AUTHOR) if is_account else ""


def _writings(author: str) -> Iterator[Writing]:
    if not author:
        return  # An empty id would match retracted comments, which have no author.
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


def _is_known(author: str) -> bool:
    """Return whether an author has votes, or follows threads, on any site."""
    return any(votes.by(author)) or any(reader_follows.of_author(author))


def _unfollow(author: str, site: str | None, now: datetime) -> int:
    """Unfollow up to `AT_ONCE` threads; return how many the author followed before."""
    followed = list(reader_follows.of_author(author, site))
    for follow in followed[:AT_ONCE]:
        reader_follows.unfollow(follow.name, author, now=now, is_erased=True)
    return len(followed)


def _withdraw(comment_id: str, author: str, now: datetime) -> None:
    def body() -> None:
        transactions.apply(votes.withdrawal_writes(comment_id, author, now=now))

    transactions.transaction(body)
    backlog.note_vote(records.VotedComment(comment_id))


def retracted_comments(site: str) -> Iterator[str]:
    """Yield the ids of a site's retracted comments, newest first."""
    where = (("site", "=", site), ("status", "=", records.Status.RETRACTED.value))
    query = reads.Query("Comment", where=where, order=("-created", "revision"), keys_only=True)
    for message in reads.walk(query):
        yield message.key.path[-1].name


def retract_again(comment_id: str, now: datetime) -> bool:
    """Retract a restored or copied comment; return False if it is retracted or missing."""

    def body() -> bool:
        row = reads.get(comment_rows.comment_key(comment_id))
        if row is None or row.status == records.Status.RETRACTED:
            return False
        change = changes.retract(comment_id, now=now, check=lambda _: None)
        name = records.ThreadName(row.site, row.thread_id)
        transactions.apply(
            *change.writes, votes.scheduled_deletion_writes(comment_id, name, now=now)
        )
        return True

    return transactions.transaction(body)
