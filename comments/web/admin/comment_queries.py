"""The types of the queries and forms of the pages that list comments."""

import contextlib
from datetime import UTC, date, datetime, time, timedelta
from typing import Annotated, Literal
from urllib.parse import urlencode

import msgspec

from comments import errors
from comments.domain import categories, records
from comments.domain.ids import thread_ids
from comments.domain.moderation import ruling_texts
from comments.domain.records import Status, Verb
from comments.moderation import review_queue
from comments.threads import thread_aliases
from comments.web.admin.form_types import form_fields
from comments.web.http.decode.parameters import Typed

ANY = "any"
StatusFilter = Literal["pending", "approved", "spam", "rejected", "hidden", "shadowed", "any"]
_DAY = timedelta(days=1)


class QueueQuery(form_fields.ListingQuery, frozen=True):
    """Filters for a site's comments. An empty value does not filter.

    `why` is a kind of ruling or one rule. `category` is a category term. `address` is the id of a
    thread or the address of its page. `since` and `until` are the first and last day (UTC).
    """

    status: StatusFilter = "pending"
    author: Typed = ""
    q: form_fields.Words = ""
    why: Typed = ""
    address: Typed = ""
    category: Typed = ""
    since: Typed = ""
    until: Typed = ""

    @property
    def statuses(self) -> tuple[Status, ...]:
        """The statuses to list."""
        return review_queue.STATUSES if self.status == ANY else (Status(self.status),)

    @property
    def refinements(self) -> dict[str, str]:
        """The filters besides status and author that are set."""
        names = ("q", "why", "address", "category", "since", "until")
        return {name: value for name in names if (value := getattr(self, name))}

    def link(self, **changes: str) -> str:
        """Return the query string of this filter with some changes, without empty values."""
        values = {"status": self.status, "author": self.author, **self.refinements, **changes}
        return urlencode({name: value for name, value in values.items() if value})

    def queue_filter(self, site: records.Site) -> review_queue.QueueFilter:
        """Return the filter for a site.

        Raises:
            errors.BadInput: the reason, the address, the category or a day is not valid.
        """
        kind = self.why.partition(":")[0]
        if kind and kind not in ruling_texts.FILTERS:
            allowed = ", ".join(ruling_texts.FILTERS)
            raise errors.BadInput("why", "unknown-value", allowed=allowed)
        until = _midnight("until", self.until)
        return review_queue.QueueFilter(
            site.id,
            self.statuses,
            self.author,
            self.q,
            threads=_thread_ids(self.address, site),
            rule=self.why,
            since=_midnight("since", self.since),
            before=until and until + _DAY,
            category=categories.canonical_term(self.category),
        )


class NewsQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The time at which a page of the queue was made."""

    since: Annotated[datetime, msgspec.Meta(tz=True)]


class BulkForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A decision about all comments of a filter that existed when the page `asked` for it."""

    act: Literal["approve", "reject", "spam", "hide", "hold"]
    asked: Annotated[datetime, msgspec.Meta(tz=True)]
    reason: Typed = ""

    @property
    def verb(self) -> Verb:
        """The decision."""
        return Verb(self.act)


class BulkChangeForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A change of a bulk decision."""

    act: Literal["cancel", "undo"]


def _thread_ids(address: str, site: records.Site) -> tuple[str, ...]:
    """Return the stored ids that a thread may have: by the text itself, and by the page there."""
    if not address:
        return ()
    ids = [thread_ids.canonical_id(address)]
    with contextlib.suppress(errors.BadInput):
        ids.append(thread_ids.page_id(address, site))
    return tuple(dict.fromkeys(thread_aliases.stored_ids(site, ids)))


def _midnight(field: str, text: str) -> datetime | None:
    """Return the beginning of a day.

    Raises:
        errors.BadInput: the text is not a date, or the day is not followed by another one.
    """
    if not text:
        return None
    try:
        day = date.fromisoformat(text)
        day + _DAY
    except (ValueError, OverflowError):
        raise errors.BadInput(field, "wrong-type", expected="date") from None
    return datetime.combine(day, time(), UTC)
