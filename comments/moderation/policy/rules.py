"""Match texts against a site's rules: find the rule that applies, its action and the reason (pure).

This module owns the stored form and the meaning of a rule. A rule has conditions of several types.
A rule matches when at least one condition of each of its types matches. If several rules match, the
strictest rule applies; of equally strict rules, the first rule applies.

Word conditions match whole words or phrases; a `*` at either end matches the rest of a word. Each
word needs one search for a fixed string, which takes time proportional to the length of the text.
Rules do not support regular expressions, because Python's regular expressions can run for hours on
a crafted text. RE2 would be safe, but it is a compiled library that every cold start would have to
load for a few users.

Before the comparison, texts are case-folded and normalized (NFKC), invisible characters are
removed, and each run of characters other than letters and digits becomes one space.
"""

import enum
import functools
import ipaddress
import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from urllib.parse import urlsplit

import msgspec

from comments import errors
from comments.domain.moderation import reasons
from comments.domain.records import Ruling, Status

MOST_PATTERNS = 500  # Maximum number of patterns of one type in one rule.
LONGEST_PATTERN = 100  # Maximum number of characters in a pattern.
_MOST = 1_000_000  # The largest number that a rule may contain.
_LISTS = ("words", "names", "websites", "hosts", "scripts", "networks")
_SEARCHED = ("words", "names")
# A host name, or an IPv6 address without brackets.
_HOST = re.compile(r"[^\s/:@*?#\[\]]+|[0-9A-Fa-f:.]+")
_NUMBERS = ("links", "approved_under", "repeated", "younger_than")
_GROWTH = 10_000  # The maximum number of characters that NFKC may add to a text.
_SHARE = 3  # A text is in a script if at least 1/3 of its letters are in that script.
_HREF = re.compile(r'\bhref="([^"]*)"')
_BARE = re.compile(r"https?://|\bwww\.")
# Invisible characters, and two ligatures that NFKC would expand to 18 and 8 letters.
_INVISIBLE = re.compile(
    "[\ufdfa\ufdfb\xad\u034f\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff]+"
)
_BETWEEN = re.compile(r"[\W_]+")
_ID = re.compile(r"[a-z0-9-]{1,40}")
_SCRIPTS = {
    "LATIN": "latin", "CYRILLIC": "cyrillic", "GREEK": "greek", "CJK": "han", "HIRAGANA": "kana",
    "KATAKANA": "kana", "HANGUL": "hangul", "ARABIC": "arabic", "HEBREW": "hebrew",
    "DEVANAGARI": "devanagari", "BENGALI": "bengali", "THAI": "thai", "TAMIL": "tamil",
    "GEORGIAN": "georgian", "ARMENIAN": "armenian",
}  # fmt: skip


class Action(enum.StrEnum):
    """The action of a rule, stored as text. `reject` refuses the text with an error."""

    HOLD = "hold"
    SHADOW = "shadow"
    SPAM = "spam"
    REJECT = "reject"


_STATUSES = {
    Action.HOLD: Status.PENDING,
    Action.SHADOW: Status.SHADOWED,
    Action.SPAM: Status.SPAM,
    Action.REJECT: Status.REJECTED,
}
_STRICTNESS = [
    Status.APPROVED, Status.PENDING, Status.SHADOWED, Status.SPAM, Status.HIDDEN, Status.REJECTED,
    Status.RETRACTED,
]  # fmt: skip


class Rule(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A rule in its stored form. Empty fields and None are not conditions.

    - `words`: words or phrases in the text.
    - `names`: words or phrases in the author's name.
    - `websites`: hosts of the author's website, including their subdomains.
    - `hosts`: hosts that the text links to, including their subdomains.
    - `links`: the text has more than this number of links.
    - `scripts`: writing systems of the text.
    - `networks`: networks from which the text is sent.
    - `approved_under`: the author has fewer than this number of approved comments on the site.
    - `repeated`: the text was posted more than this number of times within a day.
    - `younger_than`: the author has been on the site for fewer than this number of days.
    """

    id: str
    action: Action
    words: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    websites: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    links: int | None = None
    scripts: tuple[str, ...] = ()
    networks: tuple[str, ...] = ()
    approved_under: int | None = None
    repeated: int | None = None
    younger_than: int | None = None
    is_on: bool = True


class RuleSubject(msgspec.Struct, frozen=True):
    """The data about a text and its author that rules need.

    `approved` returns the author's number of approved comments on the site. Calling `approved` may
    cost a read, so it is called at most once, and only if the result depends on it. `age` is the
    number of days that the author has been on the site; None if unknown. `network` is empty if the
    network is unknown, for example for stored comments. `repeats` is 0 if the repeats were not
    counted, for example for edited texts.
    """

    body: str
    html: str
    name: str = ""
    website: str = ""
    network: str = ""
    approved: Callable[[], int] = int
    repeats: int = 0
    age: int | None = None


def check(rule: Rule) -> None:
    """Check a rule.

    Raises:
        errors.BadInput: a condition is invalid; the error names the condition.
    """
    if not _ID.fullmatch(rule.id):
        raise errors.BadInput("id", "bad-id", limit=40)
    for field in _LISTS:
        _check_patterns(field, getattr(rule, field))
    if unknown := set(rule.scripts) - set(_SCRIPTS.values()):
        raise errors.BadInput("scripts", "unknown-script", value=min(unknown))
    for network in rule.networks:
        _check_network(network)
    numbers = [name for name in _NUMBERS if getattr(rule, name) is not None]
    for field in numbers:
        if not 0 <= getattr(rule, field) <= _MOST:
            raise errors.BadInput(field, "out-of-range", minimum=0, maximum=_MOST)
    if not numbers and not count_patterns(rule):
        raise errors.BadInput("rule", "no-condition")


def check_hosts(rule: Rule) -> None:
    """Check the hosts in a new or changed rule. Stored rules skip this check.

    Raises:
        errors.BadInput: a condition has an impossible host name; the error names the condition.
    """
    for field in ("websites", "hosts"):
        if not all(map(_HOST.fullmatch, getattr(rule, field))):
            raise errors.BadInput(field, "bad-rule-host")


def count_patterns(rule: Rule) -> int:
    """Count a rule's patterns."""
    return sum(len(getattr(rule, name)) for name in _LISTS)


def _check_network(network: str) -> None:
    try:
        ipaddress.ip_network(network)
    except ValueError as error:
        raise errors.BadInput("networks", "bad-network", value=network) from error


def _check_patterns(field: str, given: Sequence[str]) -> None:
    if len(given) > MOST_PATTERNS:
        raise errors.BadInput(field, "too-many-items", limit=MOST_PATTERNS)
    for pattern in given:
        if not pattern.strip() or len(pattern) > LONGEST_PATTERN or not pattern.isprintable():
            raise errors.BadInput(field, "not-one-line", limit=LONGEST_PATTERN)
        if field in _SEARCHED and ("*" in pattern[1:-1] or not _normalize(pattern)):
            raise errors.BadInput(field, "bad-pattern")


def judge(rules: Iterable[Rule], said: RuleSubject) -> Ruling:
    """Apply the rules to a text; return the ruling "approved" if no rule matches."""
    ruling = Ruling(Status.APPROVED)
    facts = _Facts(said)
    for rule in rules:
        if rule.is_on and is_stricter(_STATUSES[rule.action], ruling.status):
            reason = facts.explain(rule)
            if reason:
                why = reasons.sentence(reason)
                ruling = Ruling(_STATUSES[rule.action], f"rule:{rule.id}", why, reason)
    return ruling


def is_stricter(one: Status, other: Status) -> bool:
    """Return whether `one` is a stricter status than `other`."""
    return _STRICTNESS.index(one) > _STRICTNESS.index(other)


def links(html: str) -> frozenset[str]:
    """Return the targets of all links in a rendered text."""
    return frozenset(_HREF.findall(html))


def count_links(said: RuleSubject) -> int:
    """Count a text's links, including addresses that are written as plain text."""
    return max(len(_HREF.findall(said.html)), len(_BARE.findall(said.body.lower())))


def likeness(body: str) -> str:
    """Return a form of a text that ignores case, spaces and punctuation."""
    return _normalize(body).replace(" ", "")


class _Facts:
    """The facts about one text that conditions need. Each fact is computed once for all rules."""

    def __init__(self, said: RuleSubject) -> None:
        self._said = said
        self._texts: dict[str, str] = {}
        self._hosts: frozenset[str] | None = None

    def explain(self, rule: Rule) -> tuple[reasons.HoldReason, ...]:
        """Explain why a rule matches, with one reason per type of condition.

        The result is empty if the rule does not match.
        """
        subject = self._said
        conditions = [
            (rule.words, self._word_reason("text-contains", subject.body, rule.words)),
            (rule.names, self._word_reason("name-contains", subject.name, rule.names)),
            (rule.websites, _under("website-leads-to", _host(subject.website), rule.websites)),
            (rule.hosts, self._link_reason(rule.hosts)),
            (rule.scripts, self._script_reason(rule.scripts)),
            (rule.networks, _within(subject.network, rule.networks)),
            (rule.links is not None, _above("links", count_links(subject), rule.links)),
            (rule.repeated is not None, _above("repeated", subject.repeats, rule.repeated)),
            (rule.younger_than is not None, _younger(subject.age, rule.younger_than)),
        ]
        asked = [reason for has_any, reason in conditions if has_any]
        if rule.approved_under is not None and all(asked):
            asked.append(_below(self._approved_count, rule.approved_under))
        return tuple(filter(None, asked)) if all(asked) else ()

    @functools.cached_property
    def _approved_count(self) -> int:
        return self._said.approved()

    def _word_reason(
        self, reason: str, text: str, patterns: Sequence[str]
    ) -> reasons.HoldReason | None:
        if not patterns:
            return None
        if reason not in self._texts:
            self._texts[reason] = f" {_normalize(text)} "
        words = self._texts[reason]
        match = next((pattern for pattern in patterns if _needle(pattern) in words), None)
        return None if match is None else _reason(reason, found=match)

    def _link_reason(self, hosts: Sequence[str]) -> reasons.HoldReason | None:
        if not hosts:
            return None
        if self._hosts is None:
            self._hosts = frozenset(map(_host, links(self._said.html)))
        return next(
            (why for host in self._hosts if (why := _under("link-leads-to", host, hosts))), None
        )

    def _script_reason(self, scripts: Sequence[str]) -> reasons.HoldReason | None:
        if not scripts:
            return None
        letters = [c for c in self._said.body if c.isalpha()]
        names = [_SCRIPTS.get(unicodedata.name(c, "").partition(" ")[0], "") for c in letters]
        for script in scripts:
            if names.count(script) * _SHARE >= len(letters) > 0:
                return _reason("script", script=script)
        return None


def _normalize(text: str) -> str:
    """Normalize a text for comparison, to case-folded words separated by single spaces."""
    shown = _INVISIBLE.sub("", text)
    plain = unicodedata.normalize("NFKC", shown).casefold()
    if len(plain) > len(shown) + _GROWTH:
        plain = shown.lower()  # The expanded text would take too long to search.
    return _BETWEEN.sub(" ", plain).strip()


@functools.lru_cache(maxsize=4096)
def _needle(pattern: str) -> str:
    """Return the string to search for in a normalized text with an added space at both ends."""
    start = "" if pattern.startswith("*") else " "
    return f"{start}{_normalize(pattern)}{'' if pattern.endswith('*') else ' '}"


def _reason(code: str, **params: str | int) -> reasons.HoldReason:
    return reasons.HoldReason(code, params)


def _host(url: str) -> str:
    try:
        return (urlsplit(url).hostname or "").rstrip(".").lower()
    except ValueError:
        return ""


def _under(reason: str, host: str, hosts: Sequence[str]) -> reasons.HoldReason | None:
    wanted = (domain.lower().strip(".") for domain in hosts)
    match = next(
        (domain for domain in wanted if host == domain or host.endswith(f".{domain}")), None
    )
    return None if match is None or not host else _reason(reason, host=match)


def _within(network: str, wanted: Sequence[str]) -> reasons.HoldReason | None:
    try:
        mine = ipaddress.ip_network(network)
    except ValueError:
        return None
    for other in wanted:
        theirs = ipaddress.ip_network(other)
        if mine.version == theirs.version and theirs.supernet_of(mine):  # type: ignore[arg-type]
            return _reason("network", network=other)
    return None


def _above(reason: str, number: int, limit: int | None) -> reasons.HoldReason | None:
    return None if limit is None or number <= limit else _reason(reason, count=limit)


def _younger(age: int | None, limit: int | None) -> reasons.HoldReason | None:
    if limit is None or age is None or age >= limit:
        return None
    return _reason("new-author", count=limit)


def _below(number: int, limit: int | None) -> reasons.HoldReason | None:
    return None if limit is None or number >= limit else _reason("few-approved", count=limit)
