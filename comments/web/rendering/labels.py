"""The texts of the admin console: names of stored values, dates, numbers and reports.

The catalogue key for a stored value (such as a status, verb or policy) consists of its kind and the
value: `admin.status-pending`.
"""

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, date, datetime, time

from comments import errors
from comments.domain import records
from comments.domain.ids import sorthash
from comments.domain.languages import catalogue, error_texts, formats
from comments.domain.moderation import ruling_texts
from comments.moderation.policy import rulebook, rules
from comments.store.memory import row_copies
from comments.transfer.importing import time_left as estimates

_TEXTS = catalogue.ENGLISH.entries["admin"]
_SURFACE = "admin."
_SCRIPT = "script-"
_LISTS = ("words", "names", "websites", "hosts", "scripts", "networks")
_NUMBERS = ("links", "approved_under", "repeated", "younger_than")
_SUBJECTS = ("rule", "thread", "import", "hook", "key", "provider")
# The formats in which `policy_changes` stores policies and times.
_POLICY = re.compile(r"\A([a-z-]{1,20}),\D{1,40}(\d{1,9})\D{1,40}(\d{1,9})\D{1,40}")
_MOMENT = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+\+00:00")
_ENDS = (".", "?", "!")


def text(key: str, /, **values: object) -> str:
    """Return a text from the catalogue.

    Raises:
        KeyError: the key does not exist, or a placeholder has no value.
    """
    return catalogue.ENGLISH.text(key, **values)


def applies() -> str:
    """Return a text that says how soon a change applies to new comments and to pages."""
    if seconds := row_copies.delay():
        return text("admin.applies-within-seconds", seconds=round(seconds))
    return text("admin.applies-at-once")


def label(kind: str, value: str, /, *, otherwise: str = "", **values: object) -> str:
    """Return the text for a stored value; if there is no text, return `otherwise` or the value."""
    key = f"{kind}-{value}"
    return text(key, **values) if key.removeprefix(_SURFACE) in _TEXTS else otherwise or value


def choices(kind: str, values: Iterable[str], empty: str = "", /) -> list[tuple[str, str]]:
    """Return stored values with their texts. An empty value gets the text of `empty`."""
    return [(value, label(kind, value or empty)) for value in values]


def of_scripts() -> dict[str, catalogue.Entry]:
    """Return the texts for the admin console's scripts, with placeholders."""
    return {name: entry for name, entry in _TEXTS.items() if name.startswith(_SCRIPT)}


def moment(at: datetime) -> str:
    """Format a date and time in UTC."""
    return formats.moment(at, catalogue.ENGLISH.language)


def day(at: date) -> str:
    """Format a date. For a `datetime`, format its date in UTC."""
    if not isinstance(at, datetime):
        at = datetime.combine(at, time(), UTC)
    return formats.day(at, catalogue.ENGLISH.language)


def month(at: date) -> str:
    """Format a month."""
    return formats.month(at, catalogue.ENGLISH.language)


def weekdays() -> list[str]:
    """Return the short names of the weekdays, beginning with Monday."""
    return formats.weekdays(catalogue.ENGLISH.language)


def number(value: int) -> str:
    """Format a whole number with separators."""
    return formats.number(value, catalogue.ENGLISH.language)


def time_left(seconds: float | None) -> str:
    """Return a text about the time that a task still needs; "" if that is not known."""
    if seconds is None:
        return ""
    count, unit = estimates.round_seconds(seconds)
    return text(f"admin.left-{unit}", count=count)


def problem(error: errors.FlatthreadError) -> str:
    """Return the error message for a page."""
    return sentence(error_texts.sentence(error), getattr(error, "field", ""))


def sentence(words: str, field: str = "") -> str:
    """Return an error message as a sentence.

    A field name at the start of the message is replaced with the field's label.
    """
    if field and words.startswith(field):
        words = label("admin.field", field) + words.removeprefix(field)
    text = f"{words[:1].upper()}{words[1:]}"
    return text if text.endswith(_ENDS) else f"{text}."


def status(comment: records.Comment) -> str:
    """Return the displayed status of a comment, which also says whether the comment is pinned."""
    shown = label("admin.status", comment.status)
    return text("admin.pinned-comment", status=shown) if comment.pinned else shown


def conditions(rule: rules.Rule) -> list[str]:
    """Return one text for each condition of a rule."""
    texts = [
        label("admin.condition", name, list=", ".join(given))
        for name in _LISTS
        if (given := getattr(rule, name))
    ]
    counts = ((name, getattr(rule, name)) for name in _NUMBERS)
    return texts + [
        label("admin.condition", name, count=count) for name, count in counts if count is not None
    ]


def ban(found: rulebook.Ban) -> str:
    """Return the terms of a ban: its kind, its end, and any banned network or mailbox."""
    if found.until is None:
        label = text("admin.ban-shadow" if found.is_shadow else "admin.ban-plain")
    else:
        key = "admin.ban-shadow-until" if found.is_shadow else "admin.ban-plain-until"
        label = text(key, moment=moment(found.until))
    return ", ".join([label, *_besides(found.known)])


def _besides(known: rulebook.BanMarks) -> Iterator[str]:
    if known.network and known.network_until is not None:
        yield text("admin.ban-network", day=day(known.network_until))
    if known.mailbox:
        yield text("admin.ban-mailbox")


def subject(entry: records.Audit) -> str:
    """Return the subject of an audit log entry as text, unless it is a comment or an author."""
    kind, _, name = entry.subject.partition(":")
    if kind == "adviser":
        return ruling_texts.classifier(name)
    if kind not in _SUBJECTS:
        return label("admin.about", kind)
    # A thread's key begins with the site's id, which is omitted because the log belongs to that
    # site.
    return label("admin.about", kind, name=name.partition("/")[2] if kind == "thread" else name)


def change(entry: records.Audit) -> str:
    """Return the states before and after the change that an audit log entry records, as text.

    The text is empty if the state is the same, as after an edit of a comment's text.
    """
    if entry.before == entry.after:
        return ""
    if entry.verb == "set-scheme":
        before, after = _schemes(entry)
    else:
        before, after = _state(entry.verb, entry.before), _state(entry.verb, entry.after)
    return text("admin.log-before-after", before=before, after=after)


def _schemes(entry: records.Audit) -> tuple[str, str]:
    """Return the levels before and after a change, with the width and digits if they changed."""
    schemes = sorthash.decode_scheme(entry.before), sorthash.decode_scheme(entry.after)
    names = [name for name in ("width", "digits") if len({getattr(s, name) for s in schemes}) > 1]

    def scheme_text(scheme: sorthash.Scheme) -> str:
        values = {name: getattr(scheme, name) for name in names}
        changed = (text(f"admin.log-{name}", **{name: value}) for name, value in values.items())
        return ", ".join([text("admin.log-levels", count=scheme.levels), *changed])

    before, after = map(scheme_text, schemes)
    return before, after


def _state(verb: str, stored: str) -> str:
    """Return the text to show for a state that an entry stores (`policy_changes`)."""
    if not stored or verb in {"set-provider", "set-mail"}:
        return stored or text("admin.log-nothing")
    if verb == "set-site":
        return ", ".join(label("admin.changed", name) for name in stored.split(", "))
    if verb in {"set-hook", "set-key"}:
        return label("admin.hook", stored)
    if verb == "set-thread":
        state, _, policy = stored.partition(" ")
        shown = label("admin.thread", state)
        return ", ".join([shown, label("admin.policy", policy)] if policy else [shown])
    if verb == "set-policy" and (match := _POLICY.fullmatch(stored)):
        return _moderation(match[1], int(match[2]), int(match[3]))
    if verb in {"put-rule", "remove-rule"}:
        shown = label("admin.action", stored)
    else:
        shown = label("admin.status", stored)
    return _MOMENT.sub(lambda at: moment(datetime.fromisoformat(at[0])), shown)


def _moderation(policy: str, days: int, reports: int) -> str:
    return ", ".join(
        [
            label("admin.policy", policy),
            text("admin.log-days", count=days) if days else text("admin.log-no-days"),
            text("admin.log-reports", count=reports) if reports else text("admin.log-no-reports"),
        ]
    )
