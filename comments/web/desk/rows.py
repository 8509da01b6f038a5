"""Comments as the desk lists them: each with its thread, its author's numbers, and what to do."""

import dataclasses
from collections.abc import Mapping, Sequence

import markupsafe

from comments import counts, docket, records, reports, rules, threads
from comments.records import Status, Verb
from comments.web import discussion
from comments.web.desk import decisions

_COUNTED = (Status.APPROVED, Status.PENDING, Status.SPAM, Status.REJECTED, Status.HIDDEN)


@dataclasses.dataclass(frozen=True, slots=True)
class Row:
    """A comment in a list. `address` is where readers meet it; empty unless that is known."""

    case: records.Case
    title: str
    address: str
    numbers: str
    reported: str
    verbs: Sequence[Verb]

    @property
    def html(self) -> markupsafe.Markup:
        """The text, as it was sanitised when it was stored."""
        return markupsafe.Markup(self.case.comment.html)  # noqa: S704 - `rendering` made it

    @property
    def author(self) -> str:
        """What the author calls himself."""
        return self.case.comment.author.name or discussion.ANONYMOUS

    @property
    def reason(self) -> str:
        """Why it stands where it does, as far as that is known."""
        return ": ".join(filter(None, (self.case.rule, self.case.why)))


def of(site: records.Site, cases: Sequence[records.Case]) -> list[Row]:
    """Rows of comments: a look-up of their threads, one of their authors, one of reports."""
    names = [records.ThreadName(site.id, case.comment.thread) for case in cases]
    about = dict(zip(names, threads.get_many(names), strict=True)) if names else {}
    numbers = docket.standings(site.id, [case.comment.author.id for case in cases])
    told = reports.of([case.comment.id for case in cases])
    return [
        _row(site, case, about[name], numbers, told.get(case.comment.id))
        for case, name in zip(cases, names, strict=True)
    ]


def _row(
    site: records.Site,
    case: records.Case,
    thread: records.Thread | None,
    numbers: Mapping[str, counts.Numbers],
    told: reports.Told | None,
) -> Row:
    said = case.comment
    title, url = ("", "") if thread is None else (thread.title, thread.url)
    address = threads.address(url, site)
    return Row(
        case,
        title or said.thread,
        f"{address}#comment-{said.id}" if address and said.listed else address,
        in_words(numbers.get(said.author.id, {})),
        "" if told is None else _reported(told),
        decisions.verbs_of(case),
    )


def in_words(numbers: counts.Numbers) -> str:
    """An author's comments by status."""
    found = [f"{numbers[status]} {status}" for status in _COUNTED if numbers.get(status)]
    return ", ".join(found)


def _reported(told: reports.Told) -> str:
    """How often a comment was reported, and for what."""
    why = ", ".join(f"{reason} {number}" for reason, number in sorted(told.reasons.items()))
    return f"{told.open} open of {sum(told.reasons.values())} ({why})"


def rule_in_words(rule: rules.Rule) -> list[str]:
    """The conditions of a rule, one after the other."""
    said = [
        f"{name}: {', '.join(given)}"
        for name in ("words", "names", "websites", "hosts", "scripts", "networks")
        if (given := getattr(rule, name))
    ]
    numbers = (
        (rule.links, "more than {} links"),
        (rule.approved_under, "fewer than {} approved comments"),
        (rule.repeated, "the same text more than {} times a day"),
    )
    return said + [words.format(number) for number, words in numbers if number is not None]
