"""Catalogue texts as HTML, for templates: `t("admin.save")`."""

from collections.abc import Callable

import markupsafe

from comments.domain.languages import catalogue, formats


def filler(texts: catalogue.Catalogue) -> Callable[..., markupsafe.Markup]:
    """Return a function that returns the texts of a language as HTML.

    The function escapes the text and all values that are not markup. The function raises `KeyError`
    if the key does not exist or a placeholder has no value.
    """

    def fill(key: str, /, **values: object) -> markupsafe.Markup:
        return markupsafe.Markup(texts.fill(key, values, markupsafe.escape))  # noqa: S704 - escaped

    return fill


text = filler(catalogue.ENGLISH)

# Templates call `t` to get a text, and use `language` and `dir` for the HTML attributes `lang` and
# `dir`.
GLOBALS = {
    "t": text,
    "language": catalogue.ENGLISH.language,
    "dir": formats.direction(catalogue.ENGLISH.language),
}
