"""Each language has every text that readers see, in its own typography, and no English is left.

The English texts are the original: the others have the same keys and placeholders. The admin
console, the demo and the examples are in English.
"""

import itertools
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from babel import Locale

from comments.domain.languages import catalogue

ROOT = Path(__file__).parents[3]
BUILT = ROOT / "comments" / "web" / "static" / "widget"
LANGUAGES = ROOT / "comments" / "domain" / "languages"
TRANSLATED = [each for each in catalogue.languages() if each != "en"]
# The surfaces for readers. Of `errors`, only the sentences that readers can meet are translated.
SURFACES = {
    "account-mail", "comment-mail", "durations", "embed", "errors", "feeds", "mail", "reasons",
    "widget", "widget-writing",
}  # fmt: skip
# Texts on these surfaces that are in English: the demo, the page for moderators, and what Akismet
# answered.
ENGLISH_ONLY = ("embed.demo-", "embed.decide", "reasons.akismet-")
# The sections of docs/errors.md whose codes readers can meet ...
READERS = ("Posting", "Proof of work", "Votes and reports", "Own data")
# ... except these, which only settings can cause.
SETTINGS = {"bad-query-key"}
# Texts that are the same in English and another language.
SAME = {
    "de": {"Code", "Link", "Moderation", "Name", "Website", "Website (optional)"},
    "fr": {"Code", "Pages", "{count} minute", "{count} minutes"},
}
# Names and examples that are the same in every language.
FOREIGN = re.compile(
    r"https?://\S+|HTTPS|JavaScript|ann@example\.org|Idempotency-Key|PUBLIC_URL|Turnstile|UTF-8|proof|repair"
    r"|thread|page|ID"
)
# English words that are not words of any other language here.
ENGLISH_WORDS = re.compile(r"\b(and|cannot|has|must|of|the|this|to|with|you|your)\b", re.IGNORECASE)
PLACEHOLDER = re.compile(r"\{(\w+)\}")
# What a text of a language never contains.
BAD_TYPOGRAPHY = {
    # Straight quotes and apostrophes.
    "de": r"['\"]|\.\.\.",
    # A space that breaks before a sign, or none; a straight apostrophe.
    "fr": r"['\"]|\.\.\.| [?!;:]|[^\s\u202f][?!;]|[^\s\u00a0]:",
    # Latin punctuation.
    "ar": r"['\"]|\.\.\.|[,;?]",
    # Half-width punctuation, and a space between two Japanese characters.
    "ja": r"['\"]|\.\.\.|[,;?!:.]|[\u3040-\u9fff] [\u3040-\u9fff]",
}

Texts = dict[str, catalogue.Entry]


def _texts(language: str) -> Texts:
    surfaces = catalogue.of(language).entries
    return {
        f"{surface}.{name}": entry
        for surface, entries in surfaces.items()
        for name, entry in entries.items()
    }


ENGLISH = _texts("en")


def _forms(entry: catalogue.Entry) -> list[str]:
    return [entry] if isinstance(entry, str) else list(entry.values())


def _placeholders(entry: catalogue.Entry) -> set[str]:
    return set(itertools.chain.from_iterable(map(PLACEHOLDER.findall, _forms(entry))))


def _plain(language: str) -> Iterator[tuple[str, str]]:
    """Yield the forms of all texts without placeholders and names."""
    for key, entry in _texts(language).items():
        for form in _forms(entry):
            yield key, FOREIGN.sub("", PLACEHOLDER.sub("", form))


def test_english_has_every_plural_form() -> None:
    for key, entry in ENGLISH.items():
        assert isinstance(entry, str) or entry.keys() == {"one", "other"}, key


@pytest.mark.parametrize("language", TRANSLATED)
def test_a_language_has_every_text_for_readers(language: str) -> None:
    own = _texts(language)
    assert {key.partition(".")[0] for key in own} == SURFACES
    assert [key for key in own if key not in ENGLISH] == []
    wanted = {
        key
        for key in ENGLISH
        if key.partition(".")[0] in SURFACES - {"errors"} and not key.startswith(ENGLISH_ONLY)
    }
    assert sorted(wanted - own.keys()) == []


@pytest.mark.parametrize("language", TRANSLATED)
def test_a_language_has_the_errors_that_readers_meet(language: str) -> None:
    sections = (ROOT / "docs" / "errors.md").read_text("utf-8").split("\n## ")
    codes = {
        code
        for section in sections
        if section.startswith(READERS)
        for code in re.findall(r"^\| `([a-z0-9-]+)`", section, re.MULTILINE)
    }
    assert len(codes) > 30
    own = catalogue.of(language).entries["errors"].keys()
    assert sorted(codes - SETTINGS - own) == []
    # Each error has the same sentences, so a page never contains two languages by chance.
    assert own == catalogue.of(TRANSLATED[0]).entries["errors"].keys()


@pytest.mark.parametrize("language", TRANSLATED)
def test_a_text_has_the_placeholders_and_the_plural_forms(language: str) -> None:
    categories = {*Locale.parse(language, sep="-").plural_form.tags, "other"}
    for key, entry in _texts(language).items():
        assert _placeholders(entry) == _placeholders(ENGLISH[key]), key
        assert isinstance(entry, str) == isinstance(ENGLISH[key], str), key
        assert isinstance(entry, str) or entry.keys() == categories, key
        assert not re.search(r"<|&\w+;", "".join(_forms(entry))), key


@pytest.mark.parametrize("language", TRANSLATED)
def test_no_english_is_left(language: str) -> None:
    same = SAME.get(language, set())
    for key, entry in _texts(language).items():
        for form in set(_forms(entry)) & set(_forms(ENGLISH[key])):
            assert form in same or not re.search("[a-z]", PLACEHOLDER.sub("", form)), key
    left = [(key, form) for key, form in _plain(language) if ENGLISH_WORDS.search(form)]
    assert left == []
    if language in {"ar", "ja"}:
        assert [(key, form) for key, form in _plain(language) if re.search("[A-Za-z]", form)] == []


@pytest.mark.parametrize("language", TRANSLATED)
def test_the_typography_is_that_of_the_language(language: str) -> None:
    bad = re.compile(BAD_TYPOGRAPHY[language])
    assert [(key, form) for key, form in _plain(language) if bad.search(form)] == []


@pytest.mark.parametrize("language", catalogue.languages())
def test_the_built_strings_are_those_of_the_catalogue(language: str) -> None:
    built = {}
    for stem in ("strings", "writing"):
        (file,) = BUILT.glob(f"{stem}-{language}-*.json")
        built |= json.loads(file.read_text("utf-8"))
    del built["writing"]  # The digest of the later texts
    own = catalogue.of(language).entries
    expected = {name: own[name] for name in ("widget", "widget-writing", "errors", "reasons")}
    # The server sends English sentences itself, so only those that a language translates are built.
    others = [catalogue.of(other).entries for other in catalogue.languages() if other != "en"]
    for name in ("errors", "reasons"):
        translated = {key for entries in others for key in entries[name]}
        expected[name] = {key: text for key, text in own[name].items() if key in translated}
    assert built == expected, "run scripts/build-widget"


def test_the_documentation_lists_the_languages() -> None:
    """It also says which catalogues no native speaker has read."""
    rows = []
    for language in catalogue.languages():
        about = json.loads((LANGUAGES / language / "meta.json").read_text("utf-8"))
        assert about.keys() == ({"name"} if language == "en" else {"name", "read-by"})
        reader = "(the original)" if language == "en" else about["read-by"] or "nobody yet"
        rows.append(f"| `{language}` | {about['name']} | {reader} |")
    assert "\n".join(rows) in (ROOT / "docs" / "embedding.md").read_text("utf-8")
