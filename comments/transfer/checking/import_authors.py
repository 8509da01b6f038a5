"""Convert the authors of an export: names, websites, addresses and ids.

A name that breaks the rules for names is repaired.

Most authors write many comments, so each author is converted only once.
"""

import contextlib
import unicodedata
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from comments import errors
from comments.domain import records
from comments.domain.crypto import guest_addresses
from comments.domain.ids import imported_ids
from comments.domain.languages import error_texts
from comments.domain.text import cleaning
from comments.transfer import import_source
from comments.transfer.checking import import_report

GUEST = "Guest"
_NOT_AT_END = " \u200d"  # A blank, and the character that joins two emoji.
_INVISIBLE = {"Cc", "Cs", "Zl", "Zp"}  # Categories: controls, lone surrogates, line separators
# The maximum number of authors in memory. When there are more, all of them are dropped from memory.
MOST = 10_000
_MAX_EMAIL = 254  # Characters; RFC 5321 limits an address in an envelope to this length.


class ImportedAuthor(NamedTuple):
    """An author, and the faults in the exported data: the kinds of notes, each with a reason."""

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
        author = self._known.get(key)
        if author is None:
            if len(self._known) >= MOST:
                self._known.clear()
            author = self._known[key] = self._convert(comment)
        return author

    def _convert(self, comment: import_source.SourceComment) -> ImportedAuthor:
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
    system, otherwise by name. An export of Flatthread names each person by one id, but contains
    mail addresses for only some of a person's comments, so the id takes precedence. No token is
    ever issued for a derived id. Only readers who prove the address can act as the author
    (`author_links`).
    """
    is_own = comment.system == imported_ids.OWN and comment.account
    if _is_email(comment.email) and not is_own:
        return imported_ids.author_ids_of_address(secret, site, comment.email)[0]
    if comment.account:
        known: tuple[str, ...] = ("account", comment.system, comment.account)
    elif comment.name.strip():
        known = ("name", " ".join(comment.name.split()).casefold())
    else:
        return ""
    return imported_ids.author_ids_of(secret, site, *known)[0]


def _is_email(text: str) -> bool:
    return len(text) <= _MAX_EMAIL and text.isprintable() and " " not in text and "@" in text


def usable_name(raw: str) -> tuple[str, list[str]]:
    """Return a name that may be stored, and the kinds of notes that describe what was changed.

    Reserved names are allowed, because the owner may have been "admin" in the other system.
    """
    plain = " ".join(raw.split())
    try:
        return cleaning.tidy_name(plain), []
    except errors.BadInput:
        return _repair_name(unicodedata.normalize("NFC", plain))


def _repair_name(name: str) -> tuple[str, list[str]]:
    """Remove invisible characters; if the name is still invalid, also remove combining marks."""
    kept = cleaning.DROPPED.sub("", name)
    visible = "".join(c for c in kept if unicodedata.category(c) not in _INVISIBLE)
    bare = "".join(c for c in visible if not unicodedata.category(c).startswith("M"))
    for candidate in (visible, bare):
        short = candidate[: cleaning.MAX_NAME].rstrip(_NOT_AT_END)
        kinds = {
            import_report.REPAIRED_NAMES: candidate != name,
            import_report.LONG_NAMES: short != candidate,
        }
        with contextlib.suppress(errors.BadInput):
            return cleaning.tidy_name(short), [kind for kind, applies in kinds.items() if applies]
    return GUEST, [import_report.NAMELESS]
