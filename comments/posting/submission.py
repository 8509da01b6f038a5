"""What people do with comments: post, edit, retract.

Owns the way from raw input to one transaction: everything is cleaned, checked and rendered
*before* the transaction, so that bad input costs no number and a transaction holds nothing slow;
then one verb of `tree`, safe to run twice.

Who a comment belongs to: `author.id`, which for guests is the capability their first post earned.
Whoever repeats a post with the same idempotency key gets the same comment, so the key is part of
the comment's id together with who speaks; another author's key leads elsewhere, never to a
comment of somebody else.
"""

import dataclasses
import hashlib
import hmac
import secrets
from collections.abc import Sequence
from datetime import datetime, timedelta
from urllib.parse import urlsplit

import msgspec

from comments import config, errors
from comments.accounts import accounts
from comments.domain import author_ids, categories, classifier_verdicts, records, thread_ids
from comments.domain.crypto import (
    caller_marks,
    encryption,
    guest_addresses,
    keyed_hashes,
    secret_rotation,
)
from comments.domain.text import sanitizing
from comments.events import backlog
from comments.moderation import rulebook, screening
from comments.sites import post_limits
from comments.store import reads, transactions
from comments.store.models import comment_rows, conversion
from comments.store.models.comment_rows import comment_id
from comments.tree import changes, placement, values, votes
from comments.tree.counters import in_transaction, shard_choice, sharding

RESUMES = timedelta(hours=1)
_MAX_TITLE = 500
_NOBODY = classifier_verdicts.Sender()
_MAX_EMAIL = 254  # RFC 5321: what fits the angle brackets of a mail's envelope


@dataclasses.dataclass(frozen=True, slots=True)
class Draft:
    """A post as it came in. `key` is the idempotency key, `parent` the answered comment's id.

    `title`, `url` and `categories` are what the author says of the thread (`naming`).
    `sender` is where it comes from: known to rules, and stored only sealed, in the question to an
    adviser who needs it, until he has answered. `since` is when the author's account was made,
    where he has one.
    """

    site: records.Site
    thread: str
    parent: str | None
    author: records.Author
    body: str
    title: str = ""
    url: str = ""
    key: str | None = None
    categories: tuple[str, ...] = ()
    sender: classifier_verdicts.Sender = _NOBODY
    since: datetime | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Prepared:
    """A post that is cleaned, checked and rendered; `said` is what rules will know of it."""

    draft: values.Draft
    said: screening.Text
    sender: classifier_verdicts.Sender


@dataclasses.dataclass(frozen=True, slots=True)
class Posted:
    """A comment that is stored, and whether this call stored it.

    `is_authors` says that the caller may be given the author's token: see `place`.
    """

    comment: records.Comment
    created: bool
    is_authors: bool = True


def post(draft: Draft, *, settings: config.Settings, now: datetime) -> Posted:
    """Store a comment once, however often it is sent: `prepare` it, and `place` it.

    Raises:
        errors.BadInput: naming the field.
        errors.NotFound, errors.Conflict, errors.KeyReused: see `placement.append`.
        errors.Forbidden: the author is banned, or a rule of the site refuses the text.
        errors.Overloaded: the store did not answer in time; a repeat with the same key is safe.
    """
    return place(prepare(draft, settings=settings, now=now), settings=settings, now=now)


def prepare(draft: Draft, *, settings: config.Settings, now: datetime) -> Prepared:
    """Clean, check and render a comment. Nothing is stored for it yet.

    Nothing is read either, but for a repeat of what may have been posted under the old secret.

    Raises:
        errors.BadInput: naming the field.
    """
    author = _clean_author(draft.author, draft.site)
    text = _text(draft.body)
    name = records.ThreadName(draft.site.id, draft.thread)
    digest, secret = _digest(settings, name, author, draft.key)
    said = screening.Text(
        draft.site.id, author, text.body, text.html, draft.sender.network, draft.since
    )
    made = values.Draft(
        id=comment_id(digest),
        name=name,
        reply_to=draft.parent,
        author=_stored(author, settings.secret, secret, digest, now),
        text=text,
        fingerprint=_fingerprint(author, draft, text, secret),
        former_fingerprint=_former_fingerprint(author, draft, text),
        created=now,
        title=clean_title(draft.title),
        url=thread_ids.page_url(draft.url, draft.thread, draft.site) if draft.url else "",
        categories=_known(categories.canonical_set(draft.categories), draft.site),
        pace=post_limits.of(draft.site, settings).posts_per_thread,
        origin=_origin(draft, comment_id(digest), secret),
        came_from=_came_from(draft, settings.secret, now),
    )
    return Prepared(made, said, draft.sender)


def place(
    prepared: Prepared,
    *,
    settings: config.Settings,
    now: datetime,
    repeats: int = 0,
    doubt: str = "",
) -> Posted:
    """Store a comment that is prepared, once, however often it is sent.

    `repeats` is how often its text came today, and `doubt` why it is held, as `admission` says.

    A newcomer's repeat under the same idempotency key proves that the caller is the author only
    within `RESUMES`, or from the network that posted: later, anyone who found the key in a log
    could take the author's token with it.

    Raises:
        errors.NotFound, errors.Conflict, errors.KeyReused, errors.TooMany: see `placement.append`.
        errors.Forbidden: the author is banned, or a rule of the site refuses the text.
        errors.Overloaded: the store did not answer in time; a repeat with the same key is safe.
    """
    said = dataclasses.replace(prepared.said, marks=_marks(prepared.said, settings.secret, now))
    decide = screening.of_post(said, repeats=repeats, doubt=doubt, now=now)
    secret, author = settings.secret, said.author.id
    detail = _questions(said.site, author, prepared.sender, secret=secret, now=now)
    draft = dataclasses.replace(prepared.draft, decide=decide, detail=detail)
    name, scheme = draft.name, settings.scheme

    def body(turn: shard_choice.Turn) -> values.Change:
        change = placement.append(scheme, draft, turn)
        transactions.apply(*change.writes)
        return change

    # Many answer one comment, or start discussions on one page, at once: let them take turns.
    # The latter meet at the thread's row, so that it is no use to spread them over its shards.
    if draft.reply_to is None:
        line = f"{name.site}/{name.id}"
        change = transactions.transaction(lambda: body(in_transaction.FIRST), line=line)
    else:
        with sharding.turn(name) as turn:
            change = transactions.transaction(lambda: body(turn), line=draft.reply_to)
    if change.is_new and change.comment.listed:
        backlog.changed(name)
    backlog.tell(change.event)
    is_recent = now - change.comment.created < RESUMES
    is_authors = bool(author) or change.is_new or is_recent or change.is_from_origin
    return Posted(change.comment, change.is_new, is_authors)


def edit(  # noqa: PLR0913 - who changes which comment, and from where
    comment_id: str,
    *,
    author_id: str,
    body: str,
    revision: int | None,
    settings: config.Settings,
    now: datetime,
    sender: classifier_verdicts.Sender = _NOBODY,
    since: datetime | None = None,
    site: str | None = None,
) -> records.Comment:
    """Replace the text of one's own comment while the edit window is open.

    The site's policy, rules and advisers see the new text too: it may be held again. `site` is the
    one that the author may write on, None where that is not asked.

    Raises:
        errors.BadInput: the body is refused.
        errors.NotFound: there is no such comment on the site, or it was retracted.
        errors.Forbidden: it is somebody else's, or too old; its author is banned, or a rule of the
            site refuses the text.
        errors.Conflict: the discussion is read-only, or a moderator took the comment away.
        errors.RevisionMismatch: it is no longer at `revision`.
    """
    text = _text(body)
    thread = _thread_of(comment_id)
    detail = ""
    if thread is not None:
        secret, where = settings.secret, thread.name.site
        detail = _questions(where, author_id, sender, secret=secret, now=now)

    def check(comment: records.Comment) -> records.Ruling | None:
        _check_site(comment, site)
        _check_owner(comment, author_id)
        if (now - comment.created).total_seconds() > settings.edit_window:
            raise errors.Forbidden("the time to edit this comment is over", code="edit-window-over")
        # A repeat of an edit that was applied finds its own work; the revision moved with it.
        if comment.body == text.body:
            return None
        _check_revision(comment, revision)
        told = screening.Text(
            comment.site, comment.author, text.body, text.html, sender.network, since
        )
        return screening.of_edit(told, comment, thread, now=now)

    def verb() -> values.Change:
        change = changes.edit(comment_id, text, now=now, check=check, detail=detail)
        transactions.apply(*change.writes)
        return change

    return _erased(transactions.transaction(verb, line=comment_id))


def retract(
    comment_id: str,
    *,
    author_id: str,
    revision: int | None,
    now: datetime,
    site: str | None = None,
) -> records.Comment:
    """Take one's own comment back: its content and author are erased for good.

    `site` is as for `edit`.

    Raises:
        errors.NotFound: there is no such comment on the site.
        errors.Forbidden: it is somebody else's.
        errors.RevisionMismatch: it is no longer at `revision`.
    """

    def check(comment: records.Comment) -> None:
        _check_site(comment, site)
        if comment.status is records.Status.RETRACTED:
            return  # nothing left to protect; the author's id was erased with the rest
        _check_owner(comment, author_id)
        _check_revision(comment, revision)

    def verb() -> values.Change:
        change = changes.retract(comment_id, now=now, check=check)
        writes = change.writes
        if change.event:
            name = records.ThreadName(change.comment.site, change.comment.thread)
            writes = (*writes, votes.ended(comment_id, name, now=now))
        transactions.apply(*writes)
        return change

    comment = _erased(transactions.transaction(verb, line=comment_id))
    backlog.voted(records.VotedComment(comment_id))
    return comment


def _thread_of(comment_id: str) -> records.Thread | None:
    """The thread of a comment, read before the transaction: an edit must not wait for its roots.

    The site's rulebook is known after it, so that the transaction does not read that either.
    """
    row = reads.get(comment_rows.comment_key(comment_id)) if comment_id else None
    thread = None if row is None else reads.get(comment_rows.thread_key_of(row.thread))
    if thread is not None:
        rulebook.get(thread.site)
    return None if thread is None else conversion.thread_record(thread)


def _erased(change: values.Change) -> records.Comment:
    comment = change.comment
    backlog.tell(change.event)
    backlog.erased(records.ThreadName(comment.site, comment.thread))
    return comment


def clean_title(raw: str) -> str:
    """A thread's title as it is stored.

    Raises:
        errors.BadInput: it is too long, or holds control characters.
    """
    return sanitizing.clean_title(_line("title", raw, _MAX_TITLE))


def _questions(
    site: str, author: str, sender: classifier_verdicts.Sender, *, secret: str, now: datetime
) -> str:
    """What the event of a text says of who is to be asked about it; "" for nobody."""
    names = tuple(each.name for each in screening.advisers(site, author))
    needs_sender = classifier_verdicts.AKISMET in names
    text = classifier_verdicts.encode(sender) if needs_sender else ""
    sent = (
        encryption.seal(text, classifier_verdicts.SENDER, secret, now=now) if needs_sender else ""
    )
    return classifier_verdicts.encode(classifier_verdicts.Asked(names, sent)) if names else ""


def _check_site(comment: records.Comment, site: str | None) -> None:
    # An account writes under one id on many sites; each of its tokens is of one of them.
    if site is not None and comment.site != site:
        raise errors.NotFound("comment", comment.id)


def _check_owner(comment: records.Comment, author_id: str) -> None:
    if not author_id or not hmac.compare_digest(comment.author.id.encode(), author_id.encode()):
        raise errors.Forbidden("this comment is not yours")


def _check_revision(comment: records.Comment, revision: int | None) -> None:
    # Votes raise the revision too, and take nothing away from what the caller saw of the text.
    if revision is not None and not comment.has_text_of(revision):
        raise errors.RevisionMismatch(revision, comment.revision)


def _text(body: str) -> values.Text:
    cleaned = sanitizing.clean_body(body)
    return values.Text(cleaned, sanitizing.render_markdown(cleaned), sanitizing.RENDERER)


def _clean_author(author: records.Author, site: records.Site) -> records.Author:
    # Staff may be called what they are: the mark beside the name says so too.
    called = (site.id, *(urlsplit(origin).hostname or "" for origin in site.origins))
    name = author.name
    return msgspec.structs.replace(
        author,
        name=sanitizing.tidy_name(name) if author.is_staff else sanitizing.clean_name(name, called),
        website=sanitizing.clean_website(author.website) if author.website else "",
        email=_email(author.email),
    )


def _email(raw: str) -> str:
    text = _line("email", raw, _MAX_EMAIL).strip()
    local, at, domain = text.partition("@")
    plain = text.isascii() and not any(c in text for c in ' ",;:<>()[]\\')
    if text and not (plain and at and local and "." in domain and "@" not in domain):
        raise errors.BadInput("email", "is not one plain address")
    return text


def _known(names: Sequence[str], site: records.Site) -> tuple[str, ...]:
    """Those that are the site's own: whoever writes first could make up any others."""
    return tuple(name for name in names if name in site.categories)


def _line(field: str, raw: str, limit: int) -> str:
    """One line of printable text, refused rather than cut."""
    if len(raw) > limit:
        raise errors.BadInput(field, f"longer than {limit} characters")
    if any(ord(c) < 32 or 0x7F <= ord(c) < 0xA0 or 0xD800 <= ord(c) < 0xE000 for c in raw):  # noqa: PLR2004
        raise errors.BadInput(field, "holds control characters")
    return raw


def _digest(
    settings: config.Settings, name: records.ThreadName, author: records.Author, key: str | None
) -> tuple[bytes, str]:
    """What the comment's id is made of, and the secret that it and its author's are made with.

    It is random, or the same for every repeat of a request.
    """
    if key is None:
        return secrets.token_bytes(32), settings.secret
    # A guest without a capability is told apart by what he says of himself. Two of the same name
    # and mail who also send the same key and the same text cannot be told from one who repeats.
    speaker = author.id or f"{author.name}\0{author.website}\0{author.email}"
    current, *before = (
        (keyed_hashes.keyed(each, "comment", name.site, name.id, speaker, key), each)
        for each in secret_rotation.accepted(settings.secret)
    )
    return next((made for made in before if _is_there(comment_id(made[0]))), current)


def _origin(draft: Draft, comment: str, secret: str) -> bytes:
    """What stands for the network of a newcomer's post that may be repeated, for this comment."""
    if draft.key is None or draft.author.id:
        return b""
    return keyed_hashes.keyed(secret, "origin", comment, draft.sender.network)[:8]


def _is_there(comment_id: str) -> bool:
    return reads.get(comment_rows.comment_key(comment_id)) is not None


def _stored(
    author: records.Author, newest: str, secret: str, digest: bytes, now: datetime
) -> records.Author:
    """The author as the row has it: the address sealed, a newcomer with an id.

    A repeat of the newcomer's first post finds that id again, by the `secret` of that.
    """
    made = author.id
    if not made:
        text = keyed_hashes.text(keyed_hashes.keyed(secret, "guest", digest.hex()))
        made = author_ids.guest(text, now)
    email = guest_addresses.sealed_address(author.email, newest, now=now)
    return msgspec.structs.replace(author, email=email, id=made)


def _came_from(draft: Draft, secret: str, now: datetime) -> str:
    """What a ban may take the network from. An account is banned by itself."""
    if _has_account(draft.author.id):
        return ""
    return caller_marks.kept(draft.site.id, draft.sender.network, secret, now=now)


def _marks(said: screening.Text, secret: str, now: datetime) -> caller_marks.Marks:
    """What bans know the author by again. Reads an account only where a mailbox is banned."""
    author, addresses = said.author, [said.author.email]
    if not _has_account(author.id):
        return caller_marks.of(said.site, said.network, addresses, secret)
    if rulebook.get(said.site).has_mailboxes:
        account = accounts.get(author.id.removeprefix(accounts.AUTHOR))
        if account is not None:
            addresses.append(accounts.readable_address(account, secret, now=now))
    return caller_marks.of(said.site, "", addresses, secret)


def _has_account(author: str) -> bool:
    return author.startswith(accounts.AUTHOR)


def _fingerprint(author: records.Author, draft: Draft, text: values.Text, secret: str) -> bytes:
    # Keyed: the rest of it is public, so a plain hash would tell a guess of the address right.
    return keyed_hashes.keyed(secret, "post", *_said(author, draft, text))


def _former_fingerprint(author: records.Author, draft: Draft, text: values.Text) -> bytes:
    """The form of older releases, so that a repeat across an upgrade is recognised."""
    return hashlib.sha256(keyed_hashes.joined(_said(author, draft, text))).digest()


def _said(author: records.Author, draft: Draft, text: values.Text) -> tuple[str, ...]:
    return (author.name, author.website, author.email, draft.parent or "", text.body)
