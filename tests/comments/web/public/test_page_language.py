"""Pages without JavaScript and feeds are in one language: that of the URL, or of the site."""

import re
from typing import Any

import feedparser
import flask.testing
import pytest

from comments.domain import records
from comments.domain.languages import catalogue
from comments.sites import site_settings
from comments.store import connection
from tests.support.html import html_reader
from tests.support.html.embedded_threads import get

PAGE = "/embed/demo?thread=page"
PATHS = [PAGE, "/embed/demo/fragment?thread=page", "/feeds/demo/thread?thread=page", "/feeds/demo?"]
TITLES = {
    "ar": "8 تعليقات",
    "de": "8 Kommentare",
    "en": "8 comments",
    "fr": "8 commentaires",
    "ja": "コメント8件",
}

pytestmark = pytest.mark.usefixtures("compacted_page")


def speak(store: connection.Store, language: str) -> None:
    with store.context():
        site_settings.change("demo", options={"language": language})


def title(page: html_reader.Document) -> str:
    return re.sub(r"\s+", " ", page.text)


@pytest.mark.parametrize("language", catalogue.languages())
@pytest.mark.parametrize("form", ["", "/fragment"])
def test_the_url_chooses_the_language(
    client: flask.testing.FlaskClient, language: str, form: str
) -> None:
    page = get(client, form, lang=language)
    direction = "rtl" if language == "ar" else "ltr"
    own = [v for _, v in page.elements if "dir" in v and v["dir"] != "auto"]
    assert {(v["lang"], v["dir"]) for v in own} == {(language, direction)}
    assert len(own) == (1 if form else 2)
    bodies = [v for _, v in page.elements if "ft-body" in (v.get("class") or "")]
    assert len(bodies) == 8
    assert {(v["lang"], v["dir"]) for v in bodies} == {("", "auto")}
    assert TITLES[language] in title(page)


def test_the_site_chooses_the_language_if_the_url_does_not(
    client: flask.testing.FlaskClient, open_store: connection.Store
) -> None:
    """The language never depends on a header, because caches keep the pages."""
    header = {"Accept-Language": "fr"}
    assert TITLES["en"] in client.get(PAGE, headers=header).text
    speak(open_store, "de")
    assert TITLES["de"] in client.get(PAGE, headers=header).text
    assert TITLES["en"] in client.get(f"{PAGE}&lang=en", headers=header).text
    response = client.get(PAGE, headers=header)
    assert "Language" not in response.headers["Vary"]
    feed = client.get("/feeds/demo/thread?thread=page", headers=header)
    assert "Kommentare" in feedparser.parse(feed.data).feed.title


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("lang", ["", "tlh", "de-AT", "DE", "../en", "en%00"])
def test_an_unknown_language_is_refused(
    client: flask.testing.FlaskClient, path: str, lang: str
) -> None:
    response = client.get(f"{path}&lang={lang}")
    assert response.status_code == 400
    assert "lang" in response.text


@pytest.mark.parametrize("path", PATHS)
def test_each_language_has_its_own_cached_answer(
    client: flask.testing.FlaskClient, open_store: connection.Store, path: str
) -> None:
    paths = [path] + [f"{path}&lang={language}" for language in catalogue.languages()]
    first = {each: client.get(each) for each in paths}
    tags = {each: response.headers["ETag"] for each, response in first.items()}
    assert len(set(tags.values())) == len(paths)
    for each in paths:
        assert client.get(each).data == first[each].data
        assert client.get(each, headers={"If-None-Match": tags[each]}).status_code == 304
        others = ", ".join(tag for other, tag in tags.items() if other != each)
        assert client.get(each, headers={"If-None-Match": others}).status_code == 200
    speak(open_store, "ja")
    changed = client.get(path, headers={"If-None-Match": tags[path]})
    assert changed.status_code == 200
    assert changed.data != first[path].data


@pytest.mark.parametrize("query", [{}, {"limit": "2"}, {"order": "best"}, {"order": "newest"}])
def test_links_keep_the_language(client: flask.testing.FlaskClient, query: dict[str, str]) -> None:
    response = client.get("/embed/demo", query_string={"thread": "page", "lang": "de"} | query)
    page = html_reader.Document(response.text)
    links = [v["href"] or "" for _, v in page.elements if "thread=" in (v.get("href") or "")]
    assert len(links) > 5
    assert [each for each in links if "lang=de" not in each] == []
    assert any(each.startswith("../feeds/") for each in links)
    if "limit" in query:
        assert "lang=de" in response.headers["Link"]
    plain = get(client, **query)
    assert [v for _, v in plain.elements if "lang=" in (v.get("href") or "")] == []


def test_links_of_feeds_keep_the_language(
    client: flask.testing.FlaskClient,
) -> None:
    for path in ("/feeds/demo/thread?thread=page&lang=fr", "/feeds/demo?lang=fr"):
        found: Any = feedparser.parse(client.get(path).data)
        links = {link.rel: link.href for link in found.feed.links}
        assert "lang=fr" in links["self"]
        assert found.feed.title.startswith("Commentaires")
        assert found.feed.title_detail.language == "fr"
        assert found.entries[0].content[0].language != "fr"
        assert all("lang=fr" in entry.link for entry in found.entries)


def test_a_reply_page_is_in_the_language(
    client: flask.testing.FlaskClient, compacted_page: dict[str, records.Comment]
) -> None:
    top = compacted_page["1"].id
    assert 'lang="ja"' in client.get(f"{PAGE}&lang=ja&below={top}").text
    assert 'lang="de"' in client.get(f"{PAGE}&lang=de&below={top}").text


@pytest.mark.parametrize(
    ("query", "site_language", "said"),
    [
        ("thread=page&limit=0&lang=de", "", "limit muss zwischen 1 und 200 liegen."),
        ("thread=page&limit=0", "fr", "limit doit être compris entre 1 et 200."),
        ("thread=page&lang=tlh", "ja", "langは次のいずれかにしてください"),
        ("thread=page&lang=tlh", "", "lang must be one of: ar, de, en, fr, ja."),
        # A sentence that exists only in English.
        ("page=https://user@blog.example/a&lang=de", "", "Host"),
    ],
)
def test_an_error_is_in_the_language_of_the_page(
    client: flask.testing.FlaskClient,
    open_store: connection.Store,
    query: str,
    site_language: str,
    said: str,
) -> None:
    speak(open_store, site_language)
    response = client.get(f"/embed/demo?{query}")
    assert response.status_code == 400
    assert said in html_reader.Document(response.text).text


def _bracketed(entry: catalogue.Entry) -> catalogue.Entry:
    if isinstance(entry, str):
        return f"[{entry}]"
    return {form: f"[{text}]" for form, text in entry.items()}


@pytest.mark.parametrize("form", ["", "/fragment"])
def test_a_page_has_only_texts_of_its_language(
    client: flask.testing.FlaskClient,
    monkeypatch: pytest.MonkeyPatch,
    form: str,
) -> None:
    """Only names and comments may be outside the brackets around the texts of the language."""
    texts = catalogue.of("de")
    marked = catalogue.Catalogue(
        "de",
        {
            surface: {name: _bracketed(entry) for name, entry in entries.items()}
            for surface, entries in texts.entries.items()
        },
    )
    monkeypatch.setattr(catalogue, "of", lambda _: marked)
    page = get(client, form, lang="de", limit=5)
    labels = [v.get("aria-label") or "" for _, v in page.elements]
    found = " ".join([page.text, *labels])
    assert found.count("[") > 10
    while found != (found := re.sub(r"\[[^][]*\]", "", found)):
        pass
    found = found.replace("author of", "")
    assert re.findall(r"[^\W\d_]{2,}", found) == []  # Single letters are initials
