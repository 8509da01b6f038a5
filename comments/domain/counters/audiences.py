"""Audiences: sets of commenters, made of sources, unions, intersections and differences (pure).

A source is a thread, a category with all categories below it, or the whole site. A category or the
site may have a period, which includes its first and its last day (UTC). The JSON form of an
audience is a source, or up to three lists of audiences:

    {"thread": "derby"}
    {"category": "sport", "since": "2026-01-01", "until": "2026-01-31"}
    {"site": true}
    {"any": [{"category": "sport"}, {"category": "news"}], "but": [{"thread": "derby"}]}
    {"all": [{"category": "sport"}, {"any": [{"thread": "derby"}, {"thread": "cup"}]}]}

An author belongs to such an audience if they belong to every audience in `all`, to at least one in
`any`, and to none in `but`. A `but` list alone has no meaning, because an audience never contains
authors who are in none of its sources.

A `Question` contains the audiences of one call. It numbers the distinct sources of these audiences.
A scan therefore needs only one bit mask for each author, which marks the sources to which the
author belongs.
"""

import functools
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import date, timedelta
from typing import NamedTuple

import msgspec

from comments import errors
from comments.domain import categories, decoders
from comments.domain.ids import thread_ids

MOST_AUDIENCES = 20
MOST_SOURCES = 20  # Different sources in one question; limited because a scan reads all at once
MOST_MENTIONS = 100  # Sources in one question, counting repetitions
DEEPEST = 3  # Maximum depth of nested lists
LONGEST_PERIOD = 366  # In days; limited because each day of a period is a range of rows
LONGEST_NAME = 100  # In characters
FIELD = "audiences"

_PERIOD = re.compile(r"\A(.*)@([\d-]+)(?:\.\.([\d-]+))?", re.DOTALL)
_MASKS = 4096  # Maximum number of results that a question caches
# The place of a value that msgspec refuses: "... - at `$.active.any[0].since`".
_PLACE = re.compile(r"`\$([^`]*)`$")


class AudienceForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An audience as JSON: a source, or lists of audiences."""

    thread: str | None = None
    category: str | None = None
    site: bool | None = None
    since: date | None = None
    until: date | None = None
    any: tuple["AudienceForm", ...] = ()
    all: tuple["AudienceForm", ...] = ()
    but: tuple["AudienceForm", ...] = ()


class Source(NamedTuple):
    """A thread, a category or, if both are empty, the site. `days` is empty for all time."""

    thread: str = ""
    category: str = ""
    days: tuple[date, ...] = ()


class Combination(NamedTuple):
    """The authors in all of `every`, in at least one of `some` if there are any, in none of `but`.

    These fields contain combinations, and sources as their places in the question.
    """

    every: tuple["Part", ...] = ()
    some: tuple["Part", ...] = ()
    but: tuple["Part", ...] = ()


Part = int | Combination


class Question:
    """The audiences of one call. Bit n of a mask of sources stands for `sources[n]`."""

    def __init__(
        self, sources: tuple[Source, ...], names: tuple[str, ...], parts: tuple[Part, ...]
    ) -> None:
        self.sources = sources
        self.names = names
        # Many authors have the same mask. The cache needs a bound because each author may have a
        # different mask.
        self._places = functools.lru_cache(_MASKS)(functools.partial(_places, parts))

    def translate_threads(self, stored_id: Callable[[str], str]) -> None:
        """Replace the ids of threads by the ids under which they are stored."""
        self.sources = tuple(
            source._replace(thread=stored_id(source.thread)) if source.thread else source
            for source in self.sources
        )

    def places(self, mask: int) -> tuple[int, ...]:
        """Return the audiences that an author in these sources belongs to, as places in `names`."""
        return self._places(mask)


def _places(parts: tuple[Part, ...], mask: int) -> tuple[int, ...]:
    return tuple(place for place, part in enumerate(parts) if _holds(part, mask))


def _holds(part: Part, mask: int) -> bool:
    if isinstance(part, int):
        return bool(mask >> part & 1)
    return (
        all(_holds(inner, mask) for inner in part.every)
        and (not part.some or any(_holds(inner, mask) for inner in part.some))
        and not any(_holds(inner, mask) for inner in part.but)
    )


def source_form(text: str) -> dict[str, object]:
    """Convert a source as people type it to its JSON form.

    The text is "category:NAME", "thread:ID" or "site". A category and the site can have a period:
    "site@2026-01-31" or "category:sport@2026-01-01..2026-01-31".

    Raises:
        errors.BadInput: the text has a different form.
    """
    kind, _, name = text.partition(":")
    if kind == "thread" and name:
        return {"thread": name}
    # Neither categories nor "site" contain "@".
    match = _PERIOD.fullmatch(text)
    rest, since, until = match.groups() if match else (text, None, None)
    kind, colon, name = rest.partition(":")
    period = {"since": since, "until": until or since} if since else {}
    if kind == "category" and name:
        return {"category": name, **period}
    if kind != "site" or colon:
        raise errors.BadInput(FIELD, "bad-source", value=text)
    return {"site": True, **period}


def question(forms: Mapping[str, object]) -> Question:
    """Make a question from named audiences, each decoded from JSON.

    Raises:
        errors.BadInput: an audience has the wrong form, or a limit is exceeded. The error names the
            place, for example "audiences.active.any[0]".
    """
    if not forms:
        raise errors.BadInput(FIELD, "required")
    if len(forms) > MOST_AUDIENCES:
        raise errors.BadInput(FIELD, "too-many-items", limit=MOST_AUDIENCES)
    if any(not 1 <= len(name) <= LONGEST_NAME for name in forms):
        raise errors.BadInput(FIELD, "wrong-length", minimum=1, maximum=LONGEST_NAME)
    places = _Places()
    parts = []
    for name, form in forms.items():
        field = f"{FIELD}.{name}"
        parts.append(_part(_form_of(form, field), field, 0, places))
    return Question(tuple(places.found), tuple(forms), tuple(parts))


def _form_of(form: object, field: str) -> AudienceForm:
    try:
        return decoders.convert(form, AudienceForm)
    except msgspec.ValidationError as error:
        place = _PLACE.search(str(error))
        raise errors.BadInput(f"{field}{place[1] if place else ''}", "audience-form") from error
    except RecursionError as error:
        raise errors.BadInput(field, "audience-too-deep", limit=DEEPEST) from error


def decode_named(text: bytes) -> dict[str, object]:
    """Decode named audiences from JSON, for `question`.

    Raises:
        errors.BadInput: the text is not a JSON object, or is nested too deeply for the parser.
    """
    try:
        return decoders.decode(text, dict[str, object])
    except msgspec.DecodeError as error:
        raise errors.BadInput(FIELD, "not-json-object") from error


class _Places:
    """The different sources of a question, each with its place."""

    def __init__(self) -> None:
        self.found: dict[Source, int] = {}
        self._mentions = 0

    def of(self, source: Source) -> int:
        self._mentions += 1
        place = self.found.setdefault(source, len(self.found))
        if place == MOST_SOURCES or self._mentions > MOST_MENTIONS:
            raise errors.BadInput(
                FIELD, "too-many-sources", limit=MOST_SOURCES, mentions=MOST_MENTIONS
            )
        return place


def _part(form: AudienceForm, field: str, depth: int, places: _Places) -> Part:
    kinds = [form.thread is not None, form.category is not None, form.site is not None]
    lists = {"all": form.all, "any": form.any, "but": form.but}
    is_source, is_combination = sum(kinds) == 1, bool(form.all or form.any)
    if is_source == is_combination or sum(kinds) > 1 or (is_source and form.but):
        raise errors.BadInput(field, "audience-form")
    if is_source:
        return places.of(_source(form, field))
    if form.since or form.until:
        raise errors.BadInput(field, "audience-form")
    if depth == DEEPEST:
        raise errors.BadInput(field, "audience-too-deep", limit=DEEPEST)
    every, some, but = (
        tuple(
            _part(inner, f"{field}.{name}[{number}]", depth + 1, places)
            for number, inner in enumerate(parts)
        )
        for name, parts in lists.items()
    )
    return Combination(every, some, but)


def _source(form: AudienceForm, field: str) -> Source:
    days = tuple(_days(form.since, form.until, field))
    if form.thread is not None:
        # Only the comments of sites and categories are counted by day.
        if days:
            raise errors.BadInput(field, "audience-form")
        return Source(thread=_canonical(thread_ids.canonical_id, form.thread, f"{field}.thread"))
    if form.category is not None:
        category = _canonical(categories.canonical, form.category, f"{field}.category")
        return Source(category=category, days=days)
    if not form.site:
        raise errors.BadInput(field, "audience-form")
    return Source(days=days)


def _canonical(convert: Callable[[str], str], raw: str, field: str) -> str:
    try:
        return convert(raw)
    except errors.BadInput as error:
        raise error.about(field) from error


def _days(since: date | None, until: date | None, field: str) -> Iterator[date]:
    """Yield the days of a period."""
    if since is None and until is None:
        return
    if since is None or until is None:
        raise errors.BadInput(field, "audience-form")
    if since > until:
        raise errors.BadInput(f"{field}.since", "since-after-until")
    number = (until - since).days + 1
    if number > LONGEST_PERIOD:
        raise errors.BadInput(field, "period-too-long", limit=LONGEST_PERIOD)
    yield from (since + timedelta(days=day) for day in range(number))
