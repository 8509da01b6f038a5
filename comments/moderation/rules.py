"""Rules over what people write: which rule speaks, what it does, and why (pure).

Owns the stored form of a rule and its meaning. A rule has conditions of several sorts; it speaks
where one of each sort that it has holds. Of several rules that speak the strictest one counts, of
equal ones the first.

Words are whole words or phrases; a `*` at either end stands for the rest of a word. Each is one
search for a fixed text, which takes time in proportion to the text whatever both hold. There are no
regular expressions: Python's can be made to run for hours, and RE2, which cannot, is a compiled
library that a cold start would load for the few who would use it.

Texts are compared without case, in one spelling of each letter (NFKC), without what is invisible,
and with a space for whatever is no letter or digit.
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
from comments.domain.records import Ruling, Status

MOST_PATTERNS = 500  # of one sort in one rule
LONGEST_PATTERN = 100
_MOST = 1_000_000  # of whatever a rule counts
_LISTS = ("words", "names", "websites", "hosts", "scripts", "networks")
_SEARCHED = ("words", "names")
# A host's name, or an address of IPv6 without its brackets.
_HOST = re.compile(r"[^\s/:@*?#\[\]]+|[0-9A-Fa-f:.]+")
_NUMBERS = ("links", "approved_under", "repeated", "younger_than")
_GROWTH = 10_000  # letters, of a text that is brought into one spelling
_SHARE = 3  # a script is a text's where it has a third of its letters
_HREF = re.compile(r'\bhref="([^"]*)"')
_BARE = re.compile(r"https?://|\bwww\.")
# ... and two ligatures that NFKC would write in 18 letters and 8.
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
    """What a rule does. Stored as text. `reject` stores nothing: whoever writes is told so."""

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
    """A rule as stored. What is empty is no condition.

    `words` are looked for in the text, `names` in the author's name, `websites` and `hosts` are
    hosts (with all below them) of his website and of links. `links` is how many links are too many,
    `approved_under` how many approved comments of the author are enough, `younger_than` how many
    days here, `repeated` how often the same text may come in a day. `scripts` are of the text,
    `networks` of whoever sends it.
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


class Said(msgspec.Struct, frozen=True):
    """What somebody wrote, as far as rules know it.

    `approved` tells how many approved comments he has on the site; it is asked once at most, and
    only where it decides, as it may take a read. `age` is for how many days he is here, None where
    nobody knows; `network` is empty where it is not known, as it is of what is stored, and
    `repeats` 0.
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
    """Refuse a rule that could not mean what its author wants.

    Raises:
        errors.BadInput: naming the condition.
    """
    if not _ID.fullmatch(rule.id):
        raise errors.BadInput("id", "1 to 40 of a-z, 0-9 and -")
    for field in _LISTS:
        _check_patterns(field, getattr(rule, field))
    if unknown := set(rule.scripts) - set(_SCRIPTS.values()):
        raise errors.BadInput("scripts", f"no script that is known: {min(unknown)}")
    for each in rule.networks:
        _check_network(each)
    numbers = [name for name in _NUMBERS if getattr(rule, name) is not None]
    for field in numbers:
        if not 0 <= getattr(rule, field) <= _MOST:
            raise errors.BadInput(field, f"is 0 to {_MOST}")
    if not numbers and not patterns(rule):
        raise errors.BadInput("rule", "has no condition")


def check_hosts(rule: Rule) -> None:
    """Refuse hosts that no address has: those of a rule that is made now, not those that stand.

    Raises:
        errors.BadInput: naming the condition.
    """
    for field in ("websites", "hosts"):
        if not all(map(_HOST.fullmatch, getattr(rule, field))):
            raise errors.BadInput(field, "is a host, as spam.example")


def patterns(rule: Rule) -> int:
    """How many patterns a rule has."""
    return sum(len(getattr(rule, name)) for name in _LISTS)


def _check_network(network: str) -> None:
    try:
        ipaddress.ip_network(network)
    except ValueError as error:
        raise errors.BadInput("networks", f"not like 203.0.113.0/24: {network}") from error


def _check_patterns(field: str, given: Sequence[str]) -> None:
    if len(given) > MOST_PATTERNS:
        raise errors.BadInput(field, f"more than {MOST_PATTERNS}")
    for pattern in given:
        if not pattern.strip() or len(pattern) > LONGEST_PATTERN or not pattern.isprintable():
            raise errors.BadInput(field, f"is not 1 to {LONGEST_PATTERN} printable characters")
        if field in _SEARCHED and ("*" in pattern[1:-1] or not _folded(pattern)):
            raise errors.BadInput(field, "is a word or a phrase, with a * at its ends if at all")


def judge(rules: Iterable[Rule], said: Said) -> Ruling:
    """What the rules make of a text; approved where none speaks."""
    found = Ruling(Status.APPROVED)
    facts = _Facts(said)
    for rule in rules:
        if rule.is_on and is_stricter(_STATUSES[rule.action], found.status):
            why = facts.why(rule)
            if why:
                found = Ruling(_STATUSES[rule.action], f"rule:{rule.id}", why)
    return found


def is_stricter(one: Status, other: Status) -> bool:
    """Whether a status keeps more from readers than another one."""
    return _STRICTNESS.index(one) > _STRICTNESS.index(other)


def links(html: str) -> frozenset[str]:
    """Where the links of a rendered text lead."""
    return frozenset(_HREF.findall(html))


def count_links(said: Said) -> int:
    """How many links a text has, those included that it only spells out."""
    return max(len(_HREF.findall(said.html)), len(_BARE.findall(said.body.lower())))


def likeness(body: str) -> str:
    """What two texts share that differ in case, spaces and punctuation only."""
    return _folded(body).replace(" ", "")


class _Facts:
    """One text as the conditions of many rules ask for it; each fact is found once."""

    def __init__(self, said: Said) -> None:
        self._said = said
        self._texts: dict[str, str] = {}
        self._hosts: frozenset[str] | None = None

    def why(self, rule: Rule) -> str:
        """Why a rule speaks, a clause for each sort of condition; empty where it does not."""
        said = self._said
        found = [
            (rule.words, self._word("text", said.body, rule.words)),
            (rule.names, self._word("name", said.name, rule.names)),
            (rule.websites, _under("website", _host(said.website), rule.websites)),
            (rule.hosts, self._linked(rule.hosts)),
            (rule.scripts, self._written(rule.scripts)),
            (rule.networks, _within(said.network, rule.networks)),
            (rule.links is not None, _above("links", count_links(said), rule.links)),
            (rule.repeated is not None, _above("the same text", said.repeats, rule.repeated)),
            (rule.younger_than is not None, _younger(said.age, rule.younger_than)),
        ]
        asked = [why for has_any, why in found if has_any]
        if rule.approved_under is not None and all(asked):
            asked.append(_below(self._approved, rule.approved_under))
        return "; ".join(asked) if asked and all(asked) else ""

    @functools.cached_property
    def _approved(self) -> int:
        return self._said.approved()

    def _word(self, field: str, text: str, patterns: Sequence[str]) -> str:
        if not patterns:
            return ""
        if field not in self._texts:
            self._texts[field] = f" {_folded(text)} "
        words = self._texts[field]
        found = next((each for each in patterns if _needle(each) in words), None)
        return "" if found is None else f"the {field} holds {found!r}"

    def _linked(self, hosts: Sequence[str]) -> str:
        if not hosts:
            return ""
        if self._hosts is None:
            self._hosts = frozenset(map(_host, links(self._said.html)))
        return next((why for host in self._hosts if (why := _under("a link", host, hosts))), "")

    def _written(self, scripts: Sequence[str]) -> str:
        if not scripts:
            return ""
        letters = [c for c in self._said.body if c.isalpha()]
        names = [_SCRIPTS.get(unicodedata.name(c, "").partition(" ")[0], "") for c in letters]
        for script in scripts:
            if names.count(script) * _SHARE >= len(letters) > 0:
                return f"it is written in {script}"
        return ""


def _folded(text: str) -> str:
    """A text as it is compared: its words in one spelling, with one space between them."""
    shown = _INVISIBLE.sub("", text)
    plain = unicodedata.normalize("NFKC", shown).casefold()
    if len(plain) > len(shown) + _GROWTH:
        plain = shown.lower()  # signs that are words, by the thousand: not worth their time
    return _BETWEEN.sub(" ", plain).strip()


@functools.lru_cache(maxsize=4096)
def _needle(pattern: str) -> str:
    """What a text between spaces holds, if it holds what a pattern says."""
    start = "" if pattern.startswith("*") else " "
    return f"{start}{_folded(pattern)}{'' if pattern.endswith('*') else ' '}"


def _host(url: str) -> str:
    try:
        return (urlsplit(url).hostname or "").rstrip(".").lower()
    except ValueError:
        return ""


def _under(what: str, host: str, hosts: Sequence[str]) -> str:
    wanted = (each.lower().strip(".") for each in hosts)
    found = next((each for each in wanted if host == each or host.endswith(f".{each}")), None)
    return "" if found is None or not host else f"{what} leads to {found}"


def _within(network: str, wanted: Sequence[str]) -> str:
    try:
        mine = ipaddress.ip_network(network)
    except ValueError:
        return ""
    for each in wanted:
        theirs = ipaddress.ip_network(each)
        if mine.version == theirs.version and theirs.supernet_of(mine):  # type: ignore[arg-type]
            return f"it comes from {each}"
    return ""


def _above(what: str, number: int, limit: int | None) -> str:
    return f"{what}: more than {limit}" if limit is not None and number > limit else ""


def _younger(age: int | None, limit: int | None) -> str:
    is_younger = limit is not None and age is not None and age < limit
    return f"the author is new: here for less than {limit} days" if is_younger else ""


def _below(number: int, limit: int | None) -> str:
    is_below = limit is not None and number < limit
    return f"fewer than {limit} approved comments" if is_below else ""
