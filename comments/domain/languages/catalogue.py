"""The texts that people read, looked up by key.

A key consists of the name of a file in the language's folder and the name of an entry in that file:
`comment-mail.reply-subject`. An entry is a text with placeholders in braces, or an object with one
text per plural category of the language (Unicode CLDR: zero, one, two, few, many, other). The value
named `count` chooses among them:

    {"comments": {"one": "{count} comment", "other": "{count} comments"}}

Whole numbers are formatted by the rules of the language. The widget fills in the same texts by the
same rules (`words.js`).

English is complete. The other languages have the surfaces for readers and the mail; the admin
console is in English. `meta.json` in a language's
folder contains the language's own name, and `read-by`: the native speaker who has read the texts,
or null.
"""

import functools
import json
import re
from collections.abc import Callable, Mapping
from importlib import resources

from comments.domain.languages import formats

Entry = str | Mapping[str, str]

_PLACEHOLDER = re.compile(r"\{(\w+)\}")


class Catalogue:
    """All texts of one language; `entries` maps surface and name to a text."""

    def __init__(self, language: str, entries: Mapping[str, Mapping[str, Entry]]) -> None:
        self.language = language
        self.entries = entries

    def text(self, key: str, /, **values: object) -> str:
        """Return a text with its placeholders filled.

        Raises:
            KeyError: no such key, or a placeholder without a value.
        """
        return self.fill(key, values, str)

    def fill(self, key: str, values: Mapping[str, object], quote: Callable[[object], str]) -> str:
        """Return a text after applying `quote` to it and its values: for HTML, `markupsafe.escape`.

        Raises:
            KeyError: no such key, or a placeholder without a value.
        """
        pattern = quote(self._pattern(key, values.get("count")))
        return _PLACEHOLDER.sub(lambda found: quote(self._format(values[found[1]])), pattern)

    def _pattern(self, key: str, count: object) -> str:
        surface, _, name = key.partition(".")
        entry = self.entries[surface][name]
        if isinstance(entry, str):
            return entry
        if not isinstance(count, int):
            raise KeyError(f"{key} needs a count")
        return entry[formats.plural_category(count, self.language)]

    def _format(self, value: object) -> object:
        is_number = isinstance(value, int) and not isinstance(value, bool)
        return formats.number(value, self.language) if is_number else value


@functools.cache
def of(language: str) -> Catalogue:
    """Return the catalogue of a language, read from its files once per process."""
    folder = resources.files(__package__) / language
    files = (file for file in folder.iterdir() if file.name.endswith(".json"))
    entries = {
        file.name.removesuffix(".json"): json.loads(file.read_text("utf-8"))
        for file in files
        if file.name != "meta.json"
    }
    return Catalogue(language, entries)


@functools.cache
def languages() -> tuple[str, ...]:
    """Return the languages that have a catalogue, in alphabetical order."""
    folders = resources.files(__package__).iterdir()
    return tuple(
        sorted(
            entry.name for entry in folders if entry.is_dir() and (entry / "errors.json").is_file()
        )
    )


def of_or_english(language: str) -> Catalogue:
    """Return the catalogue of a language, or the English one if the language has none."""
    return of(language) if language in languages() else ENGLISH


ENGLISH = of("en")
