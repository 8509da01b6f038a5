"""The types of the queries and responses of the moderators' calls for statistics.

The same types decode requests, encode responses and describe both in the OpenAPI document. The
responses contain authors' ids, which are personal data.
"""

from datetime import date
from typing import Annotated, Literal

import msgspec

from comments.notifications import reader_follows
from comments.tree.counters import audience_scan, periods, statistics
from comments.tree.counters.declared import declared_reports
from comments.web.http.decode import parameters

DEFAULT_LIMIT = 100

Lines = Annotated[int, msgspec.Meta(ge=1, le=statistics.MOST)]
# Maximum number of characters; no author's id is longer. An indexed property of the store is
# limited to 1,500 bytes.
AuthorId = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
Category = Annotated[str, msgspec.Meta(min_length=1)]
# Named audiences as JSON (`domain.audiences`). The length is limited because some proxies refuse
# longer URLs.
Audiences = Annotated[str, msgspec.Meta(min_length=1, max_length=6_000)]


class ReportQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The parameters of every report.

    Without `format`, the header Accept determines the format; the default is JSON.
    """

    limit: Lines = DEFAULT_LIMIT
    cursor: parameters.Cursor | msgspec.UnsetType = msgspec.UNSET
    format: Literal["json", "csv"] | msgspec.UnsetType = msgspec.UNSET


class PeriodReportQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The parameters of a report about a period; `since` and `until` are days (UTC).

    By default, the period is all time. `format` is as in `ReportQuery`.
    """

    since: date | msgspec.UnsetType = msgspec.UNSET
    until: date | msgspec.UnsetType = msgspec.UNSET
    format: Literal["json", "csv"] | msgspec.UnsetType = msgspec.UNSET

    @property
    def period(self) -> periods.Period:
        """Return the period."""
        return periods.Period(self.since or date.min, self.until or date.max)


class BusiestReportQuery(PeriodReportQuery, frozen=True, kw_only=True):
    """The parameters of a report about the first lines of a ranking."""

    limit: Lines = DEFAULT_LIMIT


class CategoriesReportQuery(ReportQuery, frozen=True):
    """`under` limits the report to a category and its subcategories."""

    under: Category | msgspec.UnsetType = msgspec.UNSET


class CategoryReportQuery(ReportQuery, frozen=True):
    """The category of a report."""

    category: Category


class CounterReportQuery(ReportQuery, frozen=True):
    """A declared counter, and the part of its numbers to list.

    `under` is a category, which includes its subcategories; `since` and `until` are days (UTC).
    """

    counter: Annotated[str, msgspec.Meta(min_length=1)]
    under: Category | msgspec.UnsetType = msgspec.UNSET
    since: date | msgspec.UnsetType = msgspec.UNSET
    until: date | msgspec.UnsetType = msgspec.UNSET


class AuthorReportQuery(ReportQuery, frozen=True):
    """The author of a report."""

    author: AuthorId


class AudienceQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Several audiences: a JSON object that maps names to audiences."""

    audiences: Audiences


class AudiencesQuery(AudienceQuery, frozen=True):
    """The audiences for a table. Without `format`, the header Accept determines the format."""

    format: Literal["json", "csv"] | msgspec.UnsetType = msgspec.UNSET


class MembersQuery(ReportQuery, frozen=True):
    """The audience whose members are to be listed: a JSON object with one audience."""

    audiences: Audiences


class CategoryNumbers(msgspec.Struct, frozen=True):
    """The numbers of a category, including those of its subcategories.

    `comments` is the number of approved comments, and `commenters` the number of their authors.
    """

    category: str
    comments: int
    commenters: int
    pending: int
    spam: int
    rejected: int
    retracted: int


class DayReportQuery(ReportQuery, frozen=True):
    """The first and the last day (UTC) of a report; by default, it contains all days."""

    since: date | msgspec.UnsetType = msgspec.UNSET
    until: date | msgspec.UnsetType = msgspec.UNSET


class DayNumbers(msgspec.Struct, frozen=True):
    """The numbers of a day: its comments by status, and the votes on its approved comments.

    `comments` is the number of approved comments, and `commenters` the number of their authors.
    """

    day: date
    comments: int
    commenters: int
    pending: int
    spam: int
    rejected: int
    retracted: int
    up: int
    down: int


class DayReport(msgspec.Struct, frozen=True):
    """The days that have comments, in order. Send `cursor` to get the next page."""

    days: list[DayNumbers]
    cursor: str | None


class CategoryReport(msgspec.Struct, frozen=True):
    """Categories in order; each category precedes its subcategories.

    Send `cursor` to get the next page.
    """

    categories: list[CategoryNumbers]
    cursor: str | None


class FollowerReport(msgspec.Struct, frozen=True):
    """Readers by id who agreed to be listed as followers of a thread.

    Send `cursor` to get the next page.
    """

    followers: list[reader_follows.ListedFollower]
    cursor: str | None


class CommenterReport(msgspec.Struct, frozen=True):
    """Authors by id, each with the number of their approved comments.

    Send `cursor` to get the next page. A page may contain fewer authors than `limit`.
    """

    commenters: list[statistics.AuthorCount]
    cursor: str | None


class AuthorCategoryReport(msgspec.Struct, frozen=True):
    """The categories in which an author commented, each with the number of approved comments.

    Send `cursor` to get the next page. Subcategories precede their category.
    """

    categories: list[statistics.CategoryCount]
    cursor: str | None


class AuthorThreadReport(msgspec.Struct, frozen=True):
    """The threads in which an author commented, each with the number of approved comments.

    Send `cursor` to get the next page. A page may contain fewer threads than `limit`.
    """

    threads: list[statistics.ThreadCount]
    cursor: str | None


class AudienceReport(msgspec.Struct, frozen=True):
    """The number of authors in each audience, in the order of the query."""

    audiences: list[audience_scan.AudienceCount]


class MemberReport(msgspec.Struct, frozen=True):
    """The authors in an audience, sorted by id. Send `cursor` to get the next page."""

    commenters: list[audience_scan.AudienceMember]
    cursor: str | None


class CounterSummary(msgspec.Struct, frozen=True):
    """A declared counter. `counts` describes what it counts.

    Until `complete` is true, comments from before the declaration are still being counted.
    """

    name: str
    counts: str
    complete: bool


class BusiestPages(msgspec.Struct, frozen=True):
    """The pages with the most approved comments in a period, and the number of all such pages."""

    pages: tuple[periods.BusyPage, ...]
    total: int


class BusiestPeople(msgspec.Struct, frozen=True):
    """The people with the most approved comments in a period, and the number of all of them."""

    people: tuple[periods.BusyPerson, ...]
    total: int


class BusiestHours(msgspec.Struct, frozen=True):
    """All hours of the day."""

    hours: tuple[periods.BusyHour, ...]


class CounterList(msgspec.Struct, frozen=True):
    """The declared counters of a site, at most 20."""

    counters: list[CounterSummary]


class CounterReport(msgspec.Struct, frozen=True):
    """The numbers of a declared counter, in the order of their keys.

    Until `complete` is true, comments from before the declaration are still being counted. Send
    `cursor` to get the next page. A page may contain fewer numbers than `limit`.
    """

    numbers: list[declared_reports.CountLine]
    cursor: str | None
    complete: bool
