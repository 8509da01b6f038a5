"""Catalogue texts as HTML, for templates: `t("admin.save")`."""

import markupsafe

from comments.domain.languages import catalogue


def text(key: str, /, **values: object) -> markupsafe.Markup:
    """Return a text from the catalogue as HTML. Escape the text and all values that are not markup.

    Raises:
        KeyError: the key does not exist, or a placeholder has no value.
    """
    return markupsafe.Markup(catalogue.ENGLISH.fill(key, values, markupsafe.escape))  # noqa: S704 - escaped


# Templates call `t` to get a text, and use `language` for the `lang` attribute.
GLOBALS = {"t": text, "language": catalogue.ENGLISH.language}
