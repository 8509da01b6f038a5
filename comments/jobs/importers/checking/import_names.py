"""Repair names from other systems that break the rules for names (pure)."""

import unicodedata

from comments import errors
from comments.domain.text import cleaning
from comments.jobs.importers.checking import import_report

GUEST = "Guest"
# Two of these letters are a flag.
_FLAG_LETTERS = "".join(map(chr, range(0x1F1E6, 0x1F200)))
_JOINER = "\u200d"
_INVISIBLE = {"Cc", "Cs", "Zl", "Zp"}  # controls, lone surrogates, line separators


def usable(raw: str) -> tuple[str, list[str]]:
    """Return a name that may be stored, and the kinds of notes on what was changed.

    Reserved names are allowed, because the owner may have been "admin" in the other system.
    """
    plain = " ".join(raw.split())
    try:
        return cleaning.tidy_name(plain), []
    except errors.BadInput:
        return _repaired(plain)


def _repaired(raw: str) -> tuple[str, list[str]]:
    name = unicodedata.normalize("NFC", raw)
    plain = "".join(
        c for c in cleaning.DROPPED.sub("", name) if unicodedata.category(c) not in _INVISIBLE
    )
    visible = _with_few_marks(plain)
    short = _shortened(visible)
    try:
        found = cleaning.tidy_name(short)
    except errors.BadInput:
        return GUEST, [import_report.NAMELESS]
    is_repaired, is_shortened = visible != name, short != visible
    kinds = {import_report.REPAIRED_NAMES: is_repaired, import_report.LONG_NAMES: is_shortened}
    return found, [kind for kind, applies in kinds.items() if applies]


def _with_few_marks(text: str) -> str:
    kept, marks = [], 0
    for character in text:
        kind = unicodedata.category(character)
        if kind[0] == "M":
            marks += 1
        elif kind != "Cf":
            marks = 0
        if kind[0] != "M" or marks <= cleaning.MAX_MARKS:
            kept.append(character)
    return "".join(kept)


def _shortened(name: str) -> str:
    """Return the first characters of a name, without dividing what readers see as one."""
    if len(name) <= cleaning.MAX_NAME:
        return name
    end = cleaning.MAX_NAME
    while end and _continues(name, end):
        end -= 1
    return name[: end or cleaning.MAX_NAME].rstrip()


def _continues(text: str, place: int) -> bool:
    """Return whether a character belongs to the one before: a mark, or a part of an emoji."""
    character, before = text[place], text[:place]
    if _FLAG_LETTERS[0] <= character <= _FLAG_LETTERS[-1]:
        return (len(before) - len(before.rstrip(_FLAG_LETTERS))) % 2 == 1
    is_modifier = "\U0001f3fb" <= character <= "\U0001f3ff"
    is_part = unicodedata.category(character) in {"Mn", "Mc", "Me", "Cf"}
    return is_part or is_modifier or before.endswith(_JOINER)
