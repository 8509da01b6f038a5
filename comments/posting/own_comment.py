"""Edit and retract one's own comment.

The caller must have the comment's author id, which guests get in the token from their first post,
or must have proved the address under which the comment was imported (`author_links`). A new text is
cleaned and rendered before the transaction, like the text of a new comment.
"""

import hmac
from datetime import datetime, timedelta

from comments import config, errors
from comments.domain import records
from comments.domain.moderation import classifier_verdicts
from comments.domain.text import cleaning, rendering
from comments.events import backlog
from comments.moderation import screening
from comments.moderation.policy import author_links, rulebook
from comments.store import reads, transactions
from comments.store.models import comment_rows, conversion
from comments.tree import changes, values, votes

_NOBODY = classifier_verdicts.Sender()


def edit(  # noqa: PLR0913 - the comment, the change and the caller
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

    The site's policy, rules and classifiers also screen the new text, so the comment may be held
    again. `site` limits the edit to comments on that site; None allows any site.

    Raises:
        errors.BadInput: the body is not valid.
        errors.NotFound: the site has no such comment, or the comment was retracted.
        errors.Forbidden: the comment has a different author or is too old, its author is banned, or
            one of the site's rules refuses the text.
        errors.Conflict: the discussion is read-only, or a moderator removed the comment.
        errors.RevisionMismatch: the text has changed since `revision`.
    """
    cleaned = cleaning.clean_body(body)
    text = values.RenderedText(cleaned, rendering.render_markdown(cleaned), rendering.RENDERER)
    author, thread, book = _author_thread_and_rulebook(comment_id)
    detail = screening.questions(book, author, sender, settings.secret, now=now)

    def check(comment: records.Comment) -> records.Ruling | None:
        _check_site(comment, site)
        _check_owner(comment, author_id)
        if editable_until(comment, settings, now) is None:
            raise errors.Forbidden("edit-window-over")
        # A retry of an edit that was applied finds its own text at a higher revision.
        if comment.body == text.body:
            return None
        _check_revision(comment, revision)
        screened = screening.ScreenedText(
            comment.site, comment.author, text.body, text.html, sender.network, since
        )
        return screening.of_edit(screened, comment, thread, book, now=now)

    def verb() -> values.ChangeResult:
        change = changes.edit(comment_id, text, now=now, check=check, detail=detail)
        transactions.apply(*change.writes)
        return change

    return _announce(transactions.transaction(verb, line=comment_id))


def editable_until(
    comment: records.Comment, settings: config.Settings, now: datetime
) -> datetime | None:
    """Return the end of a comment's edit window, or None if the window is over."""
    end = comment.created + timedelta(seconds=settings.edit_window)
    return end if now <= end else None


def retract(
    comment_id: str,
    *,
    author_id: str,
    revision: int | None,
    now: datetime,
    site: str | None = None,
) -> records.Comment:
    """Retract one's own comment: erase its content and author permanently.

    `site` limits the call to comments on that site; None allows any site.

    Raises:
        errors.NotFound: the site has no such comment.
        errors.Forbidden: the comment has a different author.
        errors.RevisionMismatch: the text has changed since `revision`.
    """

    def check(comment: records.Comment) -> None:
        _check_site(comment, site)
        if comment.status is records.Status.RETRACTED:
            return  # The comment is already erased, including its author's id
        _check_owner(comment, author_id)
        _check_revision(comment, revision)

    def verb() -> values.ChangeResult:
        change = changes.retract(comment_id, now=now, check=check)
        writes = change.writes
        if change.event:
            name = records.ThreadName(change.comment.site, change.comment.thread)
            writes = (*writes, votes.scheduled_deletion_writes(comment_id, name, now=now))
        transactions.apply(*writes)
        return change

    comment = _announce(transactions.transaction(verb, line=comment_id))
    backlog.note_vote(records.VotedComment(comment_id))
    return comment


def _author_thread_and_rulebook(
    comment_id: str,
) -> tuple[records.Author, records.Thread | None, rulebook.Rulebook]:
    """Read a comment's author and thread and its site's rulebook before the transaction.

    Reading the thread in the transaction would make edits conflict with new roots. If the comment
    does not exist, the transaction raises the error instead.
    """
    row = reads.get(comment_rows.comment_key(comment_id)) if comment_id else None
    if row is None:
        return records.Author(""), None, rulebook.Rulebook()
    thread = reads.get(comment_rows.thread_key_of(row.thread))
    author = conversion.comment_record(row).author
    return author, thread and conversion.thread_record(thread), rulebook.current(row.site)


def _announce(change: values.ChangeResult) -> records.Comment:
    comment = change.comment
    backlog.tell(change.event)
    backlog.note_erasure(records.ThreadName(comment.site, comment.thread))
    return comment


def _check_site(comment: records.Comment, site: str | None) -> None:
    # An account has the same author id on all sites, but each of the account's tokens is for one
    # site only.
    if site is not None and comment.site != site:
        raise errors.NotFound("comment", comment.id)


def _check_owner(comment: records.Comment, author_id: str) -> None:
    is_own = hmac.compare_digest(comment.author.id.encode(), author_id.encode())
    if not author_id or not (
        is_own or author_links.is_claimed(comment.site, comment.author.id, author_id)
    ):
        raise errors.Forbidden("not-own-comment")


def _check_revision(comment: records.Comment, revision: int | None) -> None:
    # Votes also increase the revision, but they do not change the text that the caller saw.
    if revision is not None and not comment.has_text_of(revision):
        raise errors.RevisionMismatch(revision, comment.revision)
