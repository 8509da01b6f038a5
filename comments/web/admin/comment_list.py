"""Rows of comment lists: each comment with its thread, its author's counts, and its actions."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import markupsafe
import msgspec

from comments.domain import presentation, records
from comments.domain.moderation import ruling_texts
from comments.domain.records import Status, Verb
from comments.moderation import reports
from comments.moderation.classifiers import classifier_answers
from comments.moderation.policy import author_links
from comments.store.models import counter_rows
from comments.threads import naming, thread_info
from comments.web.admin import decision_forms
from comments.web.embedding import avatars
from comments.web.rendering import labels, nesting

_COUNTED = (Status.APPROVED, Status.PENDING, Status.SPAM, Status.REJECTED, Status.HIDDEN)


class CommentListItem(msgspec.Struct, frozen=True):
    """A comment in a list.

    `address` is the comment's URL on the site's page, or "" if the URL is unknown.
    """

    case: records.Case
    title: str
    address: str
    numbers: str
    reported: str
    opinions: Sequence[str]
    verbs: Sequence[Verb]

    @property
    def html(self) -> markupsafe.Markup:
        """The text as HTML, which was sanitized when it was stored."""
        return markupsafe.Markup(self.case.comment.html)  # noqa: S704 - `rendering` made it

    @property
    def brings(self) -> Sequence[str]:
        """The page title, address and categories that were sent with an unapproved comment."""
        if self.case.comment.status is Status.APPROVED:
            return ()
        details = naming.decode(self.case.brought)
        return [
            text for text in (details.title, details.url, ", ".join(details.categories)) if text
        ]

    @property
    def author(self) -> str:
        """The name that the author entered."""
        return self.case.comment.author.name or labels.text("admin.anonymous")

    @property
    def kind(self) -> str:
        """The kind of author at the time of writing: guest, member or staff; "" if unknown."""
        return presentation.kind(self.case.comment.author) or ""

    @property
    def website(self) -> str:
        """The author's website if it is an http or https address, otherwise ""."""
        return nesting.web_address(self.case.comment.author.website)

    @property
    def reason(self) -> str:
        """The rule or decision that gave the comment its status; "" if unknown."""
        return ruling_texts.decision_text(self.case.rule, self.case.why)

    @property
    def why(self) -> str:
        """Why readers do not see the comment, or why they may want it to be removed."""
        is_shown = self.case.comment.status is Status.APPROVED
        return " · ".join(filter(None, ["" if is_shown else self.reason, self.reported]))

    @property
    def color(self) -> tuple[int, int]:
        """The hue and the shade of the author's avatar, the same as for readers."""
        return avatars.color_of(self.author)

    @property
    def initials(self) -> str:
        """The letters on the author's avatar."""
        return avatars.initials_of(self.author)

    @property
    def status(self) -> str:
        """The displayed status, which also says whether the comment is pinned."""
        return labels.status(self.case.comment)


class Beside(NamedTuple):
    """The readers' reports and the classifiers' answers about a comment."""

    told: reports.ReportSummary | None
    said: classifier_answers.StoredAnswers | None


def of(site: records.Site, cases: Sequence[records.Case]) -> list[CommentListItem]:
    """Return the list items for comments.

    Read the threads, author counts, reports and classifier answers, with one lookup for each of
    these kinds, and the links of the authors, whose counts are the sums of all linked ids.
    """
    names = [records.ThreadName(site.id, case.comment.thread) for case in cases]
    about = dict(zip(names, thread_info.get_many(names), strict=True)) if names else {}
    numbers = author_links.numbers(site.id, {case.comment.author.id for case in cases})
    ids = [case.comment.id for case in cases]
    summaries, answers = reports.of(ids), classifier_answers.of(ids)
    return [
        _row(
            site,
            case,
            about[name],
            numbers,
            Beside(summaries.get(case.comment.id), answers.get(case.comment.id)),
        )
        for case, name in zip(cases, names, strict=True)
    ]


def _row(
    site: records.Site,
    case: records.Case,
    thread: records.Thread | None,
    numbers: Mapping[str, counter_rows.Numbers],
    beside: Beside,
) -> CommentListItem:
    comment = case.comment
    title, url = ("", "") if thread is None else (thread.title, thread.url)
    shown = comment.thread if thread is None else thread.shown_id
    address = thread_info.page_address(url, shown, site)
    return CommentListItem(
        case,
        title or shown,
        f"{address}#comment-{comment.id}" if address and comment.listed else address,
        # Without pending ones, which this list decides about: the numbers follow a moment later.
        in_words({**numbers[comment.author.id], Status.PENDING: 0}),
        "" if beside.told is None else _report_text(beside.told),
        [] if beside.said is None else list(_opinions(beside.said)),
        decision_forms.verbs_of(case),
    )


def in_words(numbers: counter_rows.Numbers) -> str:
    """Return comment counts by status as text: "3 approved, 1 spam"."""
    return ", ".join(
        labels.label("admin.count", status, count=count)
        for status in _COUNTED
        if (count := numbers.get(status))
    )


def _report_text(told: reports.ReportSummary) -> str:
    """Return the number of reports and their reasons as text."""
    reasons = ", ".join(
        labels.text(
            "admin.row-reports-reason", reason=labels.label("admin.report", reason), number=number
        )
        for reason, number in sorted(told.reasons.items())
    )
    total = sum(told.reasons.values())
    return labels.text("admin.row-reports-open", open=told.open, total=total, reasons=reasons)


def _opinions(said: classifier_answers.StoredAnswers) -> Iterator[str]:
    """Return each classifier's answer as text, or the reason why the answer is missing."""
    for name, entry in sorted(said.of.items()):
        who = ruling_texts.classifier(name)
        if entry.state is classifier_answers.AnswerState.FAILED:
            yield labels.text("admin.classifier-failed", classifier=who, reason=entry.reason)
        elif entry.verdict is None:
            yield labels.text("admin.classifier-waiting", classifier=who)
        else:
            said_so = {"classifier": who, "verdict": labels.label("admin.verdict", entry.verdict)}
            if entry.reason:
                yield labels.text("admin.classifier-said-why", **said_so, reason=entry.reason)
            else:
                yield labels.text("admin.classifier-said", **said_so)
