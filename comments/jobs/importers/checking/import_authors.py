"""Convert the authors of an export: names, websites, addresses and ids.

A name that breaks the rules for names is repaired.

Most authors write many comments, so each is converted once.
"""

import unicodedata
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from comments import errors
from comments.domain import author_ids, imported_ids, records
from comments.domain.crypto import guest_addresses, keyed_hashes
from comments.domain.languages import error_texts
from comments.domain.text import cleaning
from comments.jobs.importers import import_source
from comments.jobs.importers.checking import import_report

GUEST = "Guest"
# Two of these letters are a flag.
_FLAG_LETTERS = "".join(map(chr, range(0x1F1E6, 0x1F200)))
_JOINER = "\u200d"
_INVISIBLE = {"Cc", "Cs", "Zl", "Zp"}  # controls, lone surrogates, line separators
# The maximum number of authors in memory. When there are more, all of them are dropped.
MOST = 10_000
_MAX_EMAIL = 254  # Characters; RFC 5321 limits an address in an envelope to this length.


class ImportedAuthor(NamedTuple):
    """An author, and the faults in the export's data: the kinds of notes, each with a reason."""

    author: records.Author
    faults: Sequence[tuple[str, str]]


class Authors:
    """The authors of one export.

    Author ids are derived with `secret`, and mail addresses are encrypted with it.
    """

    def __init__(self, secret: str, site: str) -> None:
        self._secret = secret
        self._site = site
        self._known: dict[tuple[str, ...], ImportedAuthor] = {}

    def of(self, comment: import_source.SourceComment) -> ImportedAuthor:
        """Convert the author of a comment."""
        key = (comment.system, comment.account, comment.email, comment.name, comment.website)
        found = self._known.get(key)
        if found is None:
            if len(self._known) >= MOST:
                self._known.clear()
            found = self._known[key] = self._converted(comment)
        return found

    def _converted(self, comment: import_source.SourceComment) -> ImportedAuthor:
        name, kinds = usable_name(comment.name)
        faults = [(kind, comment.name) for kind in kinds]
        try:
            website = cleaning.clean_website(comment.website)
        except errors.BadInput as error:
            faults.append((import_report.WEBSITES, error_texts.sentence(error)))
            website = ""
        address = comment.email if _is_email(comment.email) else ""
        sealed = guest_addresses.sealed_address(address, self._secret, now=datetime.now(UTC))
        known_as = author_id(self._secret, self._site, comment)
        return ImportedAuthor(records.Author(name, website, sealed, known_as), faults)


def author_id(secret: str, site: str, comment: import_source.SourceComment) -> str:
    """Return the author id of an imported comment, or "" if nothing identifies the author.

    Authors are distinguished by mail address if it is known, otherwise by account in the other
    system, otherwise by name. An export of Flatthread names each person by one id, but has the
    addresses of some of their comments only, so the id comes first. No token is ever issued for a
    derived id, so nobody can act as the author.
    """
    is_own = comment.system == imported_ids.OWN and comment.account
    if _is_email(comment.email) and not is_own:
        known: tuple[str, ...] = ("mail", comment.email.strip().lower())
    elif comment.account:
        known = ("account", comment.system, comment.account)
    elif comment.name.strip():
        known = ("name", " ".join(comment.name.split()).casefold())
    else:
        return ""
    return author_ids.IMPORTED + keyed_hashes.text(
        keyed_hashes.keyed(secret, "imported author", site, *known)
    )


def _is_email(text: str) -> bool:
    return len(text) <= _MAX_EMAIL and text.isprintable() and " " not in text and "@" in text


def usable_name(raw: str) -> tuple[str, list[str]]:
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
