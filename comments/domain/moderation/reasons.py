"""Reasons why a comment is held: codes with parameters, which moderators read in their language.

A reason that a person or a classifier wrote has no code; it is the text in `Ruling.why`.

Stored form: a JSON list of reasons, such as [{"code":"links","params":{"count":2}}]; "" for none.
"""

from collections.abc import Sequence

import msgspec

from comments.domain import decoders
from comments.domain.languages import catalogue


class HoldReason(msgspec.Struct, frozen=True):
    """A code on the surface `reasons` of the catalogue, with the values for its placeholders."""

    code: str
    params: dict[str, str | int] = {}


def sentence(found: Sequence[HoldReason]) -> str:
    """Return the reasons in English, as clauses of one line."""
    texts = catalogue.ENGLISH
    return "; ".join(texts.text(f"reasons.{reason.code}", **reason.params) for reason in found)


def encode(found: Sequence[HoldReason]) -> str:
    """Return the stored form."""
    return msgspec.json.encode(found).decode() if found else ""


def decode(stored: str) -> tuple[HoldReason, ...]:
    """Return the reasons from their stored form."""
    return decoders.json(tuple[HoldReason, ...]).decode(stored) if stored else ()
