"""Check the threads and comments of an export of Flatthread, and convert them for the import."""

from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

import msgspec

from comments import errors
from comments.domain import categories, records
from comments.domain.ids import author_ids, imported_ids, thread_ids
from comments.domain.languages import error_texts
from comments.domain.moderation import reasons
from comments.domain.records import Status
from comments.domain.text import cleaning, sanitizing
from comments.store.models import comment_rows
from comments.threads import naming
from comments.transfer import import_source
from comments.transfer.exporting import export_lines
from comments.tree.schemes import scheme_change

T = TypeVar("T")

_LONGEST_ID = 200
_MOST_REASONS = 20


class KeptFields:
    """The checks of one line of a file.

    Raises:
        errors.BadImport: a value is not valid; the error names the line and the field.
    """

    def __init__(self, path: Path, line: int) -> None:
        self._path = path
        self._line = line

    def bad(self, field: str, message: str) -> errors.BadImport:
        return errors.BadImport(str(self._path), self._line, f'"{field}": {message}')

    def thread(self, given: export_lines.ThreadLine) -> import_source.SourceThread:
        """Convert a thread."""
        thread_id = self._clean("id", thread_ids.canonical_id, given.id)
        page = self.page(given)
        return import_source.SourceThread(
            key=thread_id,
            line=self._line,
            link=page.url,
            id=thread_id,
            title=page.title,
            closed=given.state is records.ThreadState.CLOSED,
            keeps_ids=True,
            kept=records.MovedThread(
                policy=given.policy,
                categories=tuple(page.categories),
                created=self._time("created", given.created),
                own=tuple(sorted(set(given.own))),
                named_by=self._comment_id("named_by", given.named_by) if given.named_by else "",
                aliases=tuple(
                    self._clean("aliases", thread_ids.canonical_id, alias)
                    for alias in dict.fromkeys(given.aliases)
                ),
            ),
        )

    def comment(
        self, given: export_lines.CommentLine, page: naming.Brought
    ) -> import_source.SourceComment:
        """Convert a comment. `page` is the thread data of the comment's thread."""
        is_erased = given.status is Status.RETRACTED
        author = "" if is_erased else self._author(given.author.id)
        created = self._time("created", given.created)
        if created is None:
            raise self.bad("created", "is missing")
        parent, reply_to = self._parents(given)
        kept = records.MovedComment(
            number=self._number(given.number, parent),
            parent=parent,
            # The import may change the current slug.
            slugs=(*given.former_slugs, given.slug)[-scheme_change.MOST_SLUGS :],
            brought="",
            source=self._text("source", given.source),
        )
        if not is_erased:
            kept = self._moved_comment(given, kept, author, page)
        return import_source.SourceComment(
            system=imported_ids.OWN,
            id=self._comment_id("id", given.id),
            line=self._line,
            thread=given.thread,
            parent=reply_to,
            status=given.status,
            created=created,
            name=given.author.name,
            body=given.text,
            website=given.author.website,
            email=given.author.email,
            markup=import_source.Markup(given.markup),
            edited=self._time("edited", given.edited),
            up=self._votes("up", given.up, given.votes.values(), 1),
            down=self._votes("down", given.down, given.votes.values(), -1),
            pinned=given.pinned and not is_erased,
            kept=kept,
        )

    def page(self, given: export_lines.ExportedPage | export_lines.ThreadLine) -> naming.Brought:
        """Check thread data. Titles are stored as text and are escaped wherever they are shown."""
        title = self._text("title", given.title)
        if not title.isprintable():
            raise self.bad("title", "contains control characters")
        return naming.Brought(
            title,
            self._clean("url", cleaning.clean_website, given.url),
            self._clean("categories", categories.canonical_set, given.categories),
        )

    def _moved_comment(
        self,
        given: export_lines.CommentLine,
        kept: records.MovedComment,
        author: str,
        page: naming.Brought,
    ) -> records.MovedComment:
        brought: str | None = naming.encode(page)
        if given.page is None:
            brought = None
        elif isinstance(given.page, export_lines.ExportedPage):
            brought = naming.encode(self.page(given.page))
        return msgspec.structs.replace(
            kept,
            author=author,
            is_staff=given.author.staff,
            edited_by_staff=given.edited_by_staff,
            rule=self._text("rule", given.rule),
            why=self._text("why", given.why),
            reasons=self._reasons(given.reasons),
            stood=given.stood,
            judged=self._time("judged", given.judged),
            brought=brought,
            votes=tuple(sorted(self._cast_votes(given, author))),
        )

    def _cast_votes(
        self, given: export_lines.CommentLine, author: str
    ) -> Iterable[tuple[str, int]]:
        for voter, value in given.votes.items():
            if not voter or not value or self._author(voter, "votes") == author:
                raise self.bad(
                    "votes", "contains a vote without a voter or value, or by the author"
                )
            yield voter, value

    def _votes(self, field: str, count: int, cast: Iterable[int], value: int) -> int:
        least = sum(1 for vote in cast if vote == value)
        if count < least:
            raise self.bad(field, f"{count} is less than the {least} single votes")
        return count

    def _parents(self, given: export_lines.CommentLine) -> tuple[str | None, str | None]:
        parent, reply_to = (
            None if value is None else self._comment_id(field, value)
            for field, value in (("parent", given.parent), ("reply_to", given.reply_to))
        )
        return parent, reply_to or parent

    def _number(self, number: int, parent: str | None) -> int:
        if parent is not None and number == 0:
            raise self.bad("number", "is 0, but replies are numbered from 1")
        return number

    def _reasons(self, given: tuple[reasons.HoldReason, ...]) -> tuple[reasons.HoldReason, ...]:
        try:
            reasons.sentence(given[:_MOST_REASONS])
        except (KeyError, ValueError) as error:
            raise self.bad("reasons", "contains an unknown code") from error
        return given[:_MOST_REASONS]

    def _author(self, author: str, field: str = "author") -> str:
        is_id = author_ids.is_one(author) and author.isprintable() and "/" not in author
        if author and (not is_id or len(author) > _LONGEST_ID):
            raise self.bad(field, f"{author[:40]!r} is not an author id")
        return author

    def _comment_id(self, field: str, text: str) -> str:
        if not comment_rows.is_comment_id(text):
            raise self.bad(field, f"{text[:40]!r} is not a comment id")
        return text

    def _text(self, field: str, text: str) -> str:
        self._clean(field, sanitizing.check, text)
        return text

    def _time(self, field: str, moment: datetime | None) -> datetime | None:
        if moment is None:
            return None
        aware = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment
        try:
            return aware.astimezone(UTC)
        except OverflowError as error:
            raise self.bad(field, "is not between the years 1 and 9999") from error

    def _clean(self, field: str, clean: Callable[..., T], value: object) -> T:
        try:
            return clean(value)
        except errors.BadInput as error:
            raise self.bad(field, error_texts.sentence(error)) from error
