"""What is asked of the desk: the queries of its pages, as typed values."""

from typing import Annotated, Literal

import msgspec

from comments import docket, records
from comments.records import Status
from comments.web.shapes import Typed

ANY = "any"
Shown = Literal["pending", "approved", "spam", "rejected", "hidden", "shadowed", "any"]
Words = Annotated[str, msgspec.Meta(max_length=docket.LONGEST_TEXT)]


class _Query(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A query: what we do not know is refused, not dropped. `cursor` is empty for the start."""

    cursor: Typed = ""

    @property
    def start(self) -> str | None:
        """Where a listing goes on."""
        return self.cursor or None


class Queue(_Query, frozen=True):
    """Which comments of a site. What a form leaves empty is not asked for."""

    status: Shown = "pending"
    author: Typed = ""
    q: Words = ""

    @property
    def statuses(self) -> tuple[Status, ...]:
        """The statuses to show."""
        return docket.STATUSES if self.status == ANY else (Status(self.status),)

    def wanted(self, site: records.Site) -> docket.Wanted:
        """What to look for on a site."""
        return docket.Wanted(site.id, self.statuses, self.author, self.q)


class Author(_Query, frozen=True):
    """Which author of a site."""

    id: Typed = ""


class Listing(_Query, frozen=True):
    """A listing that is not narrowed."""


class Log(_Query, frozen=True):
    """Which entries of a log: those before a moment, of all or of one subject."""

    subject: Typed = ""


class Nothing(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """No query at all."""
