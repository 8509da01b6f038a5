"""Texts of the catalogue as HTML, for templates: `t("admin.save")`."""

import markupsafe

from comments.domain.languages import catalogue


def text(key: str, /, **values: object) -> markupsafe.Markup:
    """Return a text of the catalogue, escaped, as are its values unless they are markup.

    Raises:
        KeyError: no such key, or a placeholder without a value.
    """
    return markupsafe.Markup(catalogue.ENGLISH.fill(key, values, markupsafe.escape))  # noqa: S704 - escaped


# For templates: `t` fills a text, and `language` is for the `lang` attribute.
GLOBALS = {"t": text, "language": catalogue.ENGLISH.language}
