"""Post a comment: turn the reader's input into a stored comment.

`post` cleans, checks and renders the text, and prepares its admission and its screening.
`post_storage` then admits, screens, places and stores the comment in one transaction. The text is
prepared *before* the transaction, so that invalid input uses no comment number and the transaction
does no slow work.

Invariant: A comment's id is derived from both the author and the idempotency key, so a key never
leads to a comment by a different author
(test_new_comment.py::test_another_authors_same_key_never_returns_the_first_authors_comment).

A reply joins the thread of the comment that it answers, even if the reader's page shows the state
before a merge or a split.
"""

import dataclasses
import secrets
from urllib.parse import urlsplit

import msgspec

from comments import errors
from comments.accounts import accounts
from comments.domain import categories, records
from comments.domain.crypto import caller_marks, guest_addresses, keyed_hashes, secret_rotation
from comments.domain.ids import author_ids, thread_ids
from comments.domain.text import cleaning, rendering
from comments.limits import post_limits, usage
from comments.limits.site_request import SiteRequest
from comments.moderation import screening
from comments.moderation.policy import rulebook
from comments.posting import admission, post_storage
from comments.store import reads
from comments.store.models import comment_rows
from comments.threads import naming
from comments.tree import values


@dataclasses.dataclass(frozen=True, slots=True)
class Posted:
    """A stored comment. `created` is False for a retry.

    `is_authors` is True if the caller may get the author's token (see `post`).
    """

    comment: records.Comment
    created: bool
    is_authors: bool = True


def post(sent: admission.Submission, request: SiteRequest) -> Posted:
    """Store a comment.

    With an idempotency key, the comment is stored only once, however often it is sent.

    If a newcomer retries a post with its idempotency key, the response contains the author's token
    only if the retry comes from the network of the first post. Otherwise, anyone who found the key
    in a log could get the token.

    Raises:
        errors.BadInput: a field is not valid; the error names the field.
        errors.Forbidden, errors.Conflict, errors.TooMany, errors.Unchecked: see
            `admission.prepare`, `admission.PreparedPost.admit`, `screening.of_post` and
            `placement.Placement.place`.
        errors.NotFound, errors.KeyReused: see `placement.Placement.place`.
        errors.Overloaded: the store did not answer in time; retrying with the same key is safe.
    """
    site, now = request.site, request.now
    limits, book = post_limits.of(site, request.settings), rulebook.current(site.id)
    draft, text = _prepare(sent, request, book, pace=limits.posts_per_thread)
    prepared = admission.prepare(sent, draft, text, book, request, limits=limits)
    try:
        change = _store(prepared)
    except errors.Overloaded:
        usage.doubt(site.id, draft.id, now=now)
        raise
    if change.is_new:
        usage.count_post(site.id, draft.id, now=now)
    if not request.settings.works_between_requests:
        usage.flush_old()
    is_authors = bool(text.author.id) or change.is_new or change.is_from_origin
    return Posted(change.comment, change.is_new, is_authors)


def _store(post: admission.PreparedPost) -> values.ChangeResult:
    """Store a post in the thread to which it belongs now: that of the answered comment."""
    try:
        return post_storage.store(post)
    except errors.ThreadMoved as moved:
        name = records.ThreadName(post.draft.name.site, moved.stored)
        # The thread data describes the page on which the reader wrote.
        post.draft = msgspec.structs.replace(post.draft, name=name, brought="")
        return _store(post)


def _prepare(
    sent: admission.Submission, request: SiteRequest, book: rulebook.Rulebook, *, pace: int
) -> tuple[values.Draft, screening.ScreenedText]:
    """Make the draft to store and the text to screen, without writing to the store.

    Read the store only to find a comment that was first posted under an older secret. If the site
    has banned a mailbox, also read the author's account.
    """
    site, now, current = request.site, request.now, request.settings.secret
    author, brought, text = _clean(sent, site)
    network = request.sender.network
    name = records.ThreadName(site.id, sent.thread)
    asked = records.ThreadName(site.id, sent.asked or sent.thread)
    digest, secret = _digest(current, asked, author, sent.key)
    made = keyed_hashes.text(digest)
    parts = (author.name, author.website, author.email, sent.parent or "", text.body)
    # The hash is keyed because all parts except the e-mail address are public, so a plain hash
    # would let an attacker confirm a guessed address.
    fingerprint = keyed_hashes.keyed_digest(secret, "post", *parts)
    origin, came_from = b"", ""
    if sent.key is not None and not author.id:
        # This hash recognizes the network if a newcomer retries the post later.
        origin = keyed_hashes.keyed_digest(secret, "origin", made, network)[:8]
    if not author.id.startswith(author_ids.ACCOUNT):
        # A later ban of this guest may include the network. Accounts are banned only by id.
        came_from = caller_marks.seal_mark(site.id, network, current, now=now)
    # A retry of a newcomer's first post gets the same author id.
    guest = keyed_hashes.text(keyed_hashes.keyed_digest(secret, "guest", digest.hex()))
    stored = msgspec.structs.replace(
        author,
        id=author.id or author_ids.guest(guest, now),
        email=author.email and guest_addresses.sealed_address(author.email, current, now=now),
    )
    draft = values.Draft(
        id=made,
        name=name,
        reply_to=sent.parent,
        author=stored,
        text=text,
        fingerprint=fingerprint,
        created=now,
        brought="" if sent.is_from_test_page else naming.encode(brought),
        origin=origin,
        came_from=came_from,
        detail=screening.questions(book, author, request.sender, current, now=now),
        pace=pace,
    )
    screened = screening.ScreenedText(site.id, author, text.body, text.html, network, sent.since)
    return draft, _with_marks(screened, book, request) if book.bans else screened


def _clean(
    sent: admission.Submission, site: records.Site
) -> tuple[records.Author, naming.Brought, values.RenderedText]:
    """Clean the author, the thread data and the text."""
    author, name = sent.author, sent.author.name
    # Staff may use names such as the site's name, because a badge next to the name shows their
    # role.
    called = (site.id, *(urlsplit(origin).hostname or "" for origin in site.origins))
    author = msgspec.structs.replace(
        author,
        name=cleaning.tidy_name(name) if author.is_staff else cleaning.clean_name(name, called),
        website=cleaning.clean_website(author.website) if author.website else "",
        email=cleaning.clean_email(author.email),
    )
    body = cleaning.clean_body(sent.body)
    title = cleaning.clean_title(sent.title)
    url = thread_ids.page_url(sent.url, sent.thread, site) if sent.url else ""
    named = categories.canonical_set(sent.categories) if sent.categories else ()
    # Keep only the site's own categories; otherwise, a thread's first author could invent new
    # categories.
    known = tuple(category for category in named if category in site.categories)
    text = values.RenderedText(body, rendering.render_markdown(body), rendering.RENDERER)
    return author, naming.Brought(title, url, known), text


def _digest(
    secret: str, name: records.ThreadName, author: records.Author, key: str | None
) -> tuple[bytes, str]:
    """Return a digest (for the comment's id and a new guest's id) and the secret for the hashes.

    With an idempotency key, all retries get the same digest; otherwise the digest is random.
    """
    if key is None:
        return secrets.token_bytes(32), secret
    # A guest without a token is identified by name, website and e-mail address. Two guests with the
    # same values, key and text look like one guest who retries a request.
    speaker = author.id or f"{author.name}\0{author.website}\0{author.email}"
    current, *before = (
        (keyed_hashes.keyed_digest(accepted, "comment", name.site, name.id, speaker, key), accepted)
        for accepted in secret_rotation.accepted_secrets(secret)
    )
    keys = [comment_rows.comment_key(keyed_hashes.text(made)) for made, _ in before]
    return next((made for made, key in zip(before, keys, strict=True) if reads.get(key)), current)


def _with_marks(
    text: screening.ScreenedText, book: rulebook.Rulebook, request: SiteRequest
) -> screening.ScreenedText:
    """Add the caller marks by which bans recognize the text's author.

    Read the author's account only if the site has banned a mailbox.
    """
    author, addresses, secret = text.author, [text.author.email], request.settings.secret
    is_member = author.id.startswith(author_ids.ACCOUNT)
    if is_member and book.has_mailboxes:
        account = accounts.get(author.id.removeprefix(author_ids.ACCOUNT))
        if account is not None:
            addresses.append(accounts.readable_address(account, secret, now=request.now))
    network = "" if is_member else text.network
    marks = caller_marks.of(text.site, network, addresses, secret)
    return dataclasses.replace(text, marks=marks)
