"""The language of a public page or feed: `lang` in its URL, else the site's language, else English.

The language never depends on a header, because caches identify these responses by URL alone.
"""

from typing import Any

import msgspec

from comments import errors
from comments.domain import records
from comments.domain.languages import catalogue, formats
from comments.web.rendering import page_text


def of(lang: str | msgspec.UnsetType, site: records.Site) -> catalogue.Catalogue:
    """Return the texts for a request with this `lang` parameter.

    Raises:
        errors.BadInput: there are no texts in this language.
    """
    allowed = catalogue.languages()
    if lang is msgspec.UNSET:
        return catalogue.of(site.options.language or catalogue.ENGLISH.language)
    if lang not in allowed:
        raise errors.BadInput("lang", "unknown-value", allowed=", ".join(allowed))
    return catalogue.of(lang)


def of_refusal(lang: str, site: records.Site | None) -> catalogue.Catalogue:
    """Return the texts for an error page. `lang` may be invalid."""
    if lang in catalogue.languages():
        return catalogue.of(lang)
    return of(msgspec.UNSET, site) if site else catalogue.ENGLISH


def variables(texts: catalogue.Catalogue) -> dict[str, Any]:
    """Return a template's variables for a language; they replace the variables for English."""
    return {
        "t": page_text.filler(texts),
        "language": texts.language,
        "dir": formats.direction(texts.language),
        "texts": texts,
    }
