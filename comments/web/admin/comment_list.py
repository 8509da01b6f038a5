"""Comments as the desk lists them: each with its thread, its author's numbers, and what to do."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import markupsafe
import msgspec

from comments.domain import classifier_verdicts, presentation, records
from comments.domain.records import Status, Verb
from comments.moderation import reports, review_queue, rules
from comments.moderation.classifiers import classifier_answers
from comments.sites import thread_info
from comments.store.models import counter_rows
from comments.tree.threads import naming
from comments.web.admin import decision_forms
from comments.web.public import nesting

_COUNTED = (Status.APPROVED, Status.PENDING, Status.SPAM, Status.REJECTED, Status.HIDDEN)


class Row(msgspec.Struct, frozen=True):
    """A comment in a list. `address` is where readers meet it; empty unless that is known."""

    case: records.Case
    title: str
    address: str
    numbers: str
    reported: str
    opinions: Sequence[str]
    verbs: Sequence[Verb]

    @property
    def html(self) -> markupsafe.Markup:
        """The text, as it was sanitised when it was stored."""
        return markupsafe.Markup(self.case.comment.html)  # noqa: S704 - `rendering` made it

    @property
    def brings(self) -> Sequence[str]:
        """What readers do not see that it said of its thread: a title, an address, categories."""
        if self.case.comment.status is Status.APPROVED:
            return ()
        said = naming.decode(self.case.brought)
        return [each for each in (said.title, said.url, ", ".join(said.categories)) if each]

    @property
    def author(self) -> str:
        """What the author calls himself."""
        return self.case.comment.author.name or nesting.anonymous()

    @property
    def kind(self) -> str:
        """What the author was to the site when they wrote; empty where nobody knows."""
        return presentation.kind(self.case.comment.author) or ""

    @property
    def website(self) -> str:
        """The author's website, if it is a web address."""
        return nesting.web_address(self.case.comment.author.website)

    @property
    def reason(self) -> str:
        """Why it stands where it does, as far as that is known."""
        return ": ".join(filter(None, (self.case.rule, self.case.why)))


class Beside(NamedTuple):
    """What others say of a comment: readers who report it, and advisers outside."""

    told: reports.Told | None
    said: classifier_answers.Said | None


def of(site: records.Site, cases: Sequence[records.Case]) -> list[Row]:
    """Rows of comments: a look-up of their threads, of their authors, of reports, of opinions."""
    names = [records.ThreadName(site.id, case.comment.thread) for case in cases]
    about = dict(zip(names, thread_info.get_many(names), strict=True)) if names else {}
    numbers = review_queue.standings(site.id, [case.comment.author.id for case in cases])
    ids = [case.comment.id for case in cases]
    told, said = reports.of(ids), classifier_answers.of(ids)
    return [
        _row(
            site,
            case,
            about[name],
            numbers,
            Beside(told.get(case.comment.id), said.get(case.comment.id)),
        )
        for case, name in zip(cases, names, strict=True)
    ]


def _row(
    site: records.Site,
    case: records.Case,
    thread: records.Thread | None,
    numbers: Mapping[str, counter_rows.Numbers],
    beside: Beside,
) -> Row:
    said = case.comment
    title, url = ("", "") if thread is None else (thread.title, thread.url)
    address = thread_info.address(url, site)
    return Row(
        case,
        title or said.thread,
        f"{address}#comment-{said.id}" if address and said.listed else address,
        in_words(numbers.get(said.author.id, {})),
        "" if beside.told is None else _reported(beside.told),
        [] if beside.said is None else list(_opinions(beside.said)),
        decision_forms.verbs_of(case),
    )


def in_words(numbers: counter_rows.Numbers) -> str:
    """An author's comments by status."""
    found = [f"{numbers[status]} {status}" for status in _COUNTED if numbers.get(status)]
    return ", ".join(found)


def _reported(told: reports.Told) -> str:
    """How often a comment was reported, and for what."""
    why = ", ".join(f"{reason} {number}" for reason, number in sorted(told.reasons.items()))
    return f"{told.open} open of {sum(told.reasons.values())} ({why})"


def _opinions(said: classifier_answers.Said) -> Iterator[str]:
    """What each adviser said, or why he did not."""
    for name, entry in sorted(said.of.items()):
        who = classifier_verdicts.LABELS.get(name, name)
        if entry.state is classifier_answers.State.FAILED:
            yield f"{who} could not be asked: {entry.reason}"
        elif entry.verdict is None:
            yield f"{who} has still to say"
        else:
            yield ": ".join(filter(None, (f"{who} says {entry.verdict}", entry.reason)))


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
        (rule.younger_than, "an author who is here for less than {} days"),
    )
    return said + [words.format(number) for number, words in numbers if number is not None]
