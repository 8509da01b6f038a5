"""Convert single comments of an export to the form in which they are stored.

A name is repaired (`import_authors`), an unusable website is removed, and a text is corrected and
rendered (`import_bodies`). The report notes each change of the content.
"""

from datetime import UTC, datetime, timedelta

import msgspec

from comments import errors
from comments.domain import records
from comments.domain.ids import imported_ids
from comments.domain.languages import error_texts
from comments.domain.records import Status
from comments.domain.text import cleaning
from comments.threads import naming
from comments.transfer import import_source
from comments.transfer.checking import import_authors, import_bodies, import_report, page_mapping
from comments.transfer.import_source import Markup
from comments.transfer.parsing import html_references

_FIRST_PAGE = datetime(1990, 1, 1, tzinfo=UTC)  # The first page of the World Wide Web
_CLOCKS = timedelta(days=1)  # How far the clock of the other system may be ahead


class CommentConversion:
    """The conversion of the comments of one file. Author ids are derived with `secret`."""

    def __init__(
        self,
        site: records.Site,
        remarks: import_report.ImportReport,
        mapping: page_mapping.PageMapping,
        *,
        secret: str,
    ) -> None:
        self._now = datetime.now(UTC)
        self._site = site
        self._remarks = remarks
        self._mapping = mapping
        self._authors = import_authors.Authors(secret, site.id)

    def convert(self, comment: import_source.SourceComment) -> records.ImportedComment:
        """Convert a comment to its stored form, but without its parent.

        Raises:
            errors.BadImport: the text cannot be stored.
        """
        self._note_date(comment)
        is_erased = comment.status is Status.RETRACTED
        converted = self._body(comment, is_erased=is_erased)
        return records.ImportedComment(
            id=imported_ids.comment_id(self._site.id, comment.system, comment.id),
            reply_to=None,
            author=records.Author("") if is_erased else self._author(comment),
            body=converted.body,
            html=converted.html,
            renderer="" if is_erased else converted.renderer,
            status=comment.status,
            created=comment.created,
            source=f"{comment.system}:{comment.id}",
            up=comment.up,
            down=comment.down,
            edited=comment.edited,
            pinned=comment.pinned,
            kept=self._moved_comment(comment),
        )

    def _note_date(self, comment: import_source.SourceComment) -> None:
        is_late = comment.created > self._now + _CLOCKS
        if is_late or comment.created < _FIRST_PAGE:
            kind = import_report.LATE if is_late else import_report.EARLY
            self._remarks.note(kind, comment.line, f"{comment.id}: {comment.created}")

    def _body(
        self, comment: import_source.SourceComment, *, is_erased: bool
    ) -> import_bodies.ConvertedBody:
        body, markup = ("", comment.markup) if is_erased else self._correct_body(comment)
        if not body and not is_erased:
            self._remarks.note(import_report.EMPTY, comment.line, comment.id)
        try:
            converted = import_bodies.convert(body, markup)
        except errors.BadInput as error:
            text = error_texts.sentence(error)
            raise self._remarks.bad(comment.line, f"comment {comment.id}: {text}") from error
        for kind, count in (
            (import_report.IMAGES, converted.images),
            (import_report.EMBEDS, converted.embeds),
            (import_report.UNLINKED, converted.unlinked),
            (import_report.REMOVED, converted.removed),
        ):
            if count:
                self._remarks.note(kind, comment.line, comment.id)
        return converted

    def _correct_body(self, comment: import_source.SourceComment) -> tuple[str, Markup]:
        """Correct a text and its markup.

        If a comment has no text and its name is too long, the name becomes its text. In Markdown,
        references to control characters stay, because they can be part of code.
        """
        markup = comment.markup
        if not comment.body.strip() and len(comment.name) > cleaning.MAX_NAME:
            self._remarks.note(import_report.TEXT_IN_NAME, comment.line, comment.id)
            return comment.name, Markup.PLAIN
        body = comment.body.replace("\0", "")
        corrected = [import_report.NUL] if body != comment.body else []
        if markup is not Markup.PLAIN:
            is_html = markup is Markup.HTML
            correct = html_references.repair if is_html else html_references.join_halves
            body, corrections = correct(body)
            corrected += corrections
        for correction in corrected:
            self._remarks.count(import_report.CORRECTED, correction, comment.line)
        return body, markup

    def _moved_comment(self, comment: import_source.SourceComment) -> records.MovedComment | None:
        """Map the address in a comment's thread data, which can become the thread's address."""
        kept = comment.kept
        if kept is None or not kept.brought or not self._mapping.texts:
            return kept
        brought = naming.decode(kept.brought)
        mapped = self._mapping.website(brought.url)
        return msgspec.structs.replace(kept, brought=naming.encode(brought._replace(url=mapped)))

    def _author(self, comment: import_source.SourceComment) -> records.Author:
        author, faults = self._authors.of(comment)
        for kind, text in faults:
            self._remarks.note(kind, comment.line, f"{comment.id}: {text}")
        kept = comment.kept
        if kept is None:
            return author
        known_as = author.id if kept.author is None else kept.author
        return msgspec.structs.replace(author, id=known_as, is_staff=kept.is_staff)
