"""Claims about answers given again: they are what Flask would answer now, header by header.

Two processes serve one store: one that gives answers again, and one that asks Flask every time.
Whatever is asked, and whatever was written through either, both say the same.
"""

import random
import string
from collections.abc import Callable, Iterator
from typing import Any

import flask
import flask.testing
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from werkzeug.test import TestResponse

from comments import app as wiring
from comments import config, datastore, folding, materialized, posting, public, records, sites
from comments.web import answers, replays
from emulator import inprocess, testing
from tests import folds, trees
from tests.comments import starts

PAGE = "/api/v1/sites/demo/comments?thread=page"
GZIP = {"Accept-Encoding": "gzip, br"}
SITE = "/api/v1/sites/demo/comments"
OTHERS = ("other", "odd & even")
Answer = tuple[str, list[tuple[str, str]], bytes]


def answer(response: TestResponse) -> Answer:
    return response.status, list(response.headers), response.data


class Process:
    """An application with a store of its own, whose requests to Flask are counted."""

    def __init__(self, engine: inprocess.Engine, settings: config.Settings) -> None:
        self.now = 0.0
        self.store = datastore.Store(inprocess.Channel(engine), project="test")
        self.store.kept(materialized.HOLDINGS, lambda: materialized.Holdings(lambda: self.now))
        self.app = wiring.create_app(settings, self.store)
        self.client = self.app.test_client()
        self.asked = 0
        self._count: Callable[..., None] = self._counted
        flask.request_started.connect(self._count, self.app)

    def _counted(self, *_arguments: object, **_named: object) -> None:
        self.asked += 1


@pytest.fixture
def rows(open_store: datastore.Store, site: records.Site) -> dict[str, records.Comment]:
    """A thread that was folded, in several buckets."""
    with open_store.context(), pytest.MonkeyPatch.context() as patch:
        folds.small_buckets(patch)
        grown = trees.grow(site, trees.TREE)
        for thread in ("page", *OTHERS):
            trees.post(site, f"of {thread}", thread=thread)
            folds.whole(trees.name_of(site, thread))
        trees.post(site, "of raw", thread="raw")
        return grown


@pytest.fixture
def quick(engine: inprocess.Engine, settings: config.Settings, site: records.Site) -> Process:
    """A process as it is run."""
    return Process(engine, settings)


@pytest.fixture
def plain(engine: inprocess.Engine, settings: config.Settings) -> Process:
    """A process that asks Flask every time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(replays, "Replays", lambda wsgi: wsgi)
        return Process(engine, settings)


def questions(rows: dict[str, records.Comment]) -> Iterator[str]:
    """What can be asked, some of it wrong."""
    some = rows["1"].id
    yield from (PAGE, f"{PAGE}&limit=2", f"{PAGE}&limit=3", f"{PAGE}&order=recent")
    yield from (f"{PAGE}&order=best&limit=2", f"{PAGE}&order=newest", f"{PAGE}&parent=root")
    yield from (f"{PAGE}&around={some}", f"{PAGE}&around={rows['2'].id}&limit=2")
    yield from (f"/api/v1/comments/{some}/replies", f"/api/v1/comments/{some}/replies?limit=1")
    yield from (f"/api/v1/comments/{some}", "/api/v1/sites/demo/comments?page=http://a.example/x")
    yield from (f"{PAGE}&limit=0", f"{PAGE}&cursor=x", f"{PAGE}&limit=2&limit=2", f"{PAGE}&x=1")
    yield from ("/api/v1/sites/nobody/comments?thread=page", "/api/v1/openapi.json", "/healthz")
    yield "/embed/demo?thread=page"
    for thread in ("other", "oth%65r", "odd+%26+even", "odd%20%26+even", "raw", "none", "", "%ff"):
        yield from (f"{SITE}?thread={thread}", f"{SITE}?limit=2&thread={thread}")
        yield f"{SITE}?thread={thread}&order=recent"
    yield from (f"{SITE}?thread=other&thread=page", f"{SITE}?%74hread=page&thread=other")
    yield from (f"{SITE}?thread=other&page=http://a.example/x", f"{SITE}?thread=other&limit=all")


def headers(chance: random.Random, tags: list[str]) -> dict[str, str]:
    """What may come with a question."""
    coding = chance.choice(("", "gzip", "gzip, deflate, br", "identity", "gzip;q=0", "*", "br"))
    found = {"Accept-Encoding": coding} if coding else {}
    if chance.random() < 0.4:
        tag = chance.choice(tags)
        found["If-None-Match"] = chance.choice((tag, f"W/{tag}", f'"x", {tag}', "*", '"x"', "x"))
    if chance.random() < 0.2:
        found["Origin"] = chance.choice(("http://localhost:8080", "https://b.example", "null"))
    if chance.random() < 0.1:
        found |= {"Upgrade": "websocket", "Connection": "Upgrade"}
    return found


@pytest.mark.slow
def test_an_answer_given_again_is_the_one_that_flask_gives(
    quick: Process, plain: Process, rows: dict[str, records.Comment]
) -> None:
    chance = random.Random(1)
    asked = list(questions(rows))
    tags = ['"none"']
    written = 0
    for step in range(1_200):
        if step % 60 == 59:
            written += write(chance.choice((quick, plain)), rows, chance)
        if step % 300 == 299:
            fold(quick)
        url, method = chance.choice(asked), chance.choice(("GET", "GET", "HEAD"))
        sent = headers(chance, tags)
        ours = answer(quick.client.open(url, method=method, headers=sent))
        theirs = answer(plain.client.open(url, method=method, headers=sent))
        assert ours == theirs, (step, method, url, sent)
        tags = [*tags[-8:], dict(ours[1]).get("ETag", '"none"')]
    assert written == 20
    assert plain.asked - quick.asked > 120  # the claim is about answers that were given again


CODINGS = ("", "gzip", "gzip;q=0.5, identity", "identity;q=0, *", "*;q=0", "br, gzip;q=0")
KNOWN = ("{0}", "W/{0}", '"x", {0}', '{0},W/"y"', "*", "{0}, *", "{1}", "{0} {1}", '"{0}', ",", "")
FIELDS = {
    "Accept-Encoding": st.sampled_from(CODINGS)
    | st.text(st.characters(min_codepoint=32, max_codepoint=255), max_size=8),
    "If-None-Match": st.sampled_from(KNOWN) | st.text(string.printable[:95], max_size=12),
    "Range": st.sampled_from(("bytes=0-9", "bytes=-1", "x")),
    "If-Range": st.sampled_from(("{0}", '"x"')),
    "If-Match": st.sampled_from(("{0}", "*", '"x"')),
    "If-Modified-Since": st.just("Fri, 01 Jan 2100 00:00:00 GMT"),
    "Cache-Control": st.just("no-cache, no-store"),
    "Authorization": st.just("Bearer x"),
    "Origin": st.sampled_from(("http://localhost:8080", "null")),
    "Host": st.sampled_from(("localhost", "b.example:81")),
}
STEPS = st.lists(
    st.tuples(
        st.integers(0, 1) | st.integers(0, 60),
        st.sampled_from(("GET", "GET", "HEAD", "OPTIONS")),
        st.fixed_dictionaries({}, optional=FIELDS),
        st.sampled_from((None,) * 9 + ("write",)),
    ),
    max_size=20,
)


@settings(
    max_examples=15,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(STEPS)
def test_whatever_a_client_sends_it_gets_what_flask_gives(
    quick: Process,
    plain: Process,
    rows: dict[str, records.Comment],
    steps: list[tuple[int, str, dict[str, str], str | None]],
) -> None:
    """The store goes on from example to example: what holds must hold in any state of it."""
    asked = list(questions(rows))
    last = plain.client.get(PAGE).headers["ETag"]
    tags = dict.fromkeys(asked, last)  # the last one of each
    for place, method, fields, then in steps:
        url = asked[place % len(asked)]
        sent = {name: value.replace("{0}", tags[url]) for name, value in fields.items()}
        sent = {name: value.replace("{1}", last) for name, value in sent.items()}
        ours = answer(quick.client.open(url, method=method, headers=sent))
        assert ours == answer(plain.client.open(url, method=method, headers=sent))
        last = dict(ours[1]).get("ETag", '"none"')
        tags[url] = last
        if then:
            write(quick, rows, random.Random(place))


def write(process: Process, rows: dict[str, records.Comment], chance: random.Random) -> int:
    """Post below a comment, then perhaps edit or retract it."""
    parent = rows[chance.choice(sorted(rows))].id
    posted = {"name": "Ann", "body": f"a reply {chance.random()}", "parent": parent}
    made = process.client.post(PAGE, json=posted).json
    assert made is not None
    one = f"/api/v1/comments/{made['comment']['id']}"
    token = {"Authorization": f"Bearer {made['token']}"}
    if chance.random() < 0.5:
        assert process.client.patch(one, json={"body": "other"}, headers=token).status_code == 200
    if chance.random() < 0.3:
        assert process.client.delete(one, headers=token).status_code == 200
    return 1


def fold(process: Process) -> None:
    """Fold the thread, and clear when nobody holds the directory before."""
    with process.store.context():
        folding.fold(trees.SETTINGS.scheme, records.ThreadName("demo", "page"))


def test_flask_is_asked_once_for_each_coding(
    quick: Process, rows: dict[str, records.Comment]
) -> None:
    for _ in range(5):
        tag = quick.client.get(PAGE).headers["ETag"]
        assert quick.client.get(PAGE, headers=GZIP).headers["Content-Encoding"] == "gzip"
        assert quick.client.head(PAGE).status_code == 200
        assert quick.client.get(PAGE, headers={"If-None-Match": tag}).status_code == 304
    assert quick.asked == 2


@pytest.mark.parametrize("headers", [{}, GZIP])
def test_flask_is_asked_once_for_the_first_pages_of_a_sites_threads(
    quick: Process, plain: Process, rows: dict[str, records.Comment], headers: dict[str, str]
) -> None:
    for thread in ("page", *OTHERS):
        asked = {"query_string": {"thread": thread}, "headers": headers}
        found = answer(quick.client.get(SITE, **asked))
        assert found == answer(plain.client.get(SITE, **asked))
        known = {**headers, "If-None-Match": dict(found[1])["ETag"]}
        asked["headers"] = known
        assert answer(quick.client.get(SITE, **asked)) == answer(plain.client.get(SITE, **asked))
        assert quick.client.get(SITE, **asked).status_code == 304
    assert quick.asked == 1


def test_a_thread_new_to_a_process_costs_one_read(
    engine: inprocess.Engine, quick: Process, rows: dict[str, records.Comment]
) -> None:
    quick.client.get(PAGE)
    with testing.meter(engine) as cost:
        quick.client.get(f"{SITE}?thread=other")
    assert (quick.asked, cost.reads, cost.writes) == (1, 1, 0)


@pytest.mark.parametrize("headers", [{}, GZIP])
def test_a_process_that_read_once_at_its_start_answers_the_first_reader_at_once(
    engine: inprocess.Engine,
    quick: Process,
    plain: Process,
    rows: dict[str, records.Comment],
    headers: dict[str, str],
) -> None:
    with testing.meter(engine) as cost, pytest.MonkeyPatch.context() as patch:
        patch.setattr(wiring, "_WARMING", 60.0)
        starts.read_once(quick.app)
    assert (cost.writes, cost.deletes) == (0, 0)
    for thread in ("page", *OTHERS):
        assert is_read(quick, thread)
    before = quick.asked
    for thread in ("page", *OTHERS):
        sent = {"query_string": {"thread": thread}, "headers": headers}
        assert answer(quick.client.get(SITE, **sent)) == answer(plain.client.get(SITE, **sent))
    assert quick.asked == before == 4  # once for each coding, of a page and of a cut one


def test_a_process_reads_a_few_threads_at_its_start_and_not_all_of_them(
    quick: Process, rows: dict[str, records.Comment], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wiring, "_WARMING", 60.0)
    monkeypatch.setattr(wiring, "_WARMED", 2)
    starts.read_once(quick.app)
    assert sum(is_read(quick, thread) for thread in ("page", *OTHERS)) == 2


def is_read(process: Process, thread: str) -> bool:
    """Whether the process holds a thread's directory."""
    place = ("directory", records.ThreadName("demo", thread))
    with process.store.context():
        held = datastore.kept(materialized.HOLDINGS, materialized.Holdings)
        return held.cache.get(place) is not None


def test_what_changed_in_another_thread_is_in_its_first_answer(
    quick: Process, plain: Process, rows: dict[str, records.Comment]
) -> None:
    quick.client.get(PAGE)
    url = f"{SITE}?thread=other"
    assert plain.client.post(url, json={"name": "Ann", "body": "just now"}).status_code == 201
    assert "just now" in quick.client.get(url).text
    assert quick.asked == 1


def post(process: Process, parent: records.Comment, body: str) -> None:
    """Answer a comment of the page."""
    posted = {"name": "Ann", "body": body, "parent": parent.id}
    assert process.client.post(PAGE, json=posted).status_code == 201


@pytest.mark.parametrize("headers", [{}, GZIP])
def test_flask_is_not_asked_again_after_changes(
    quick: Process, plain: Process, rows: dict[str, records.Comment], headers: dict[str, str]
) -> None:
    before = quick.client.get(PAGE, headers=headers).headers["ETag"]
    for number in range(3):
        post(plain, rows["1"], f"new text {number}")
        known = {**headers, "If-None-Match": before}
        found = answer(quick.client.get(PAGE, headers=known))
        assert found == answer(plain.client.get(PAGE, headers=known))
        assert found[0] == "200 OK"
        before = dict(found[1])["ETag"]
    post(plain, rows["1"], "told by another process")
    known = {**headers, "If-None-Match": plain.client.get(PAGE, headers=headers).headers["ETag"]}
    assert answer(quick.client.get(PAGE, headers=known)) == answer(
        plain.client.get(PAGE, headers=known)
    )
    assert quick.client.get(PAGE, headers=known).status_code == 304
    assert quick.asked == 1


def test_a_changed_page_is_made_once_and_not_for_who_has_it(
    quick: Process,
    plain: Process,
    rows: dict[str, records.Comment],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    quick.client.get(PAGE)
    post(plain, rows["1"], "a change")
    known = {"If-None-Match": plain.client.get(PAGE).headers["ETag"]}
    sought, made = [], []
    of_thread, fragments = answers.of_thread, public.Rows.json

    def seek(*asked: Any) -> object:
        sought.append(asked)
        return of_thread(*asked)

    def make(rows: public.Rows) -> bytes:
        made.append(rows)
        return fragments(rows)

    monkeypatch.setattr(answers, "of_thread", seek)
    monkeypatch.setattr(public.Rows, "json", make)
    assert quick.client.get(PAGE, headers=known).status_code == 304
    assert (len(sought), len(made)) == (1, 0)
    for _ in range(3):
        assert quick.client.get(PAGE).status_code == 200
    assert (len(sought), len(made), quick.asked) == (2, 1, 1)


def test_what_only_the_floor_knows_is_left_to_flask(
    engine: inprocess.Engine, quick: Process, plain: Process, rows: dict[str, records.Comment]
) -> None:
    for process in (quick, plain):
        process.client.get(PAGE)
    asked = f"{SITE}?thread=raw"  # was never folded
    costs = []
    for process in (quick, plain):
        with testing.meter(engine) as cost:
            found = answer(process.client.get(asked))
        assert found[0] == "200 OK"
        costs.append((found, cost.reads))
    assert costs[0] == costs[1]
    assert quick.asked == 2


def test_what_goes_wrong_before_flask_is_asked_goes_wrong_as_ever(
    quick: Process,
    plain: Process,
    rows: dict[str, records.Comment],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    quick.client.get(PAGE)

    def fail(*_arguments: object) -> None:
        raise RuntimeError("a fault of ours")

    monkeypatch.setattr("comments.heads.Head.page", fail)
    failed = [process.client.get(f"{SITE}?thread=other") for process in (quick, plain)]
    assert [each.status_code for each in failed] == [500, 500]
    assert failed[0].get_json()["code"] == failed[1].get_json()["code"]
    assert quick.asked == 2


def test_another_threads_answer_has_the_settings_that_the_site_has_now(
    quick: Process, rows: dict[str, records.Comment]
) -> None:
    quick.client.get(PAGE)
    with quick.store.context():
        sites.change("demo", cdn_seconds=9)
    url = f"{SITE}?thread=other"
    assert "s-maxage=9" in quick.client.get(url).headers["Cache-Control"]


def test_every_answer_rests_on_a_probe_of_its_own(
    engine: inprocess.Engine, quick: Process, plain: Process, rows: dict[str, records.Comment]
) -> None:
    write(plain, rows, random.Random(2))
    quick.client.get(PAGE)
    with testing.meter(engine) as cost:
        for _ in range(3):
            quick.client.get(PAGE)
    assert (quick.asked, cost.reads) == (1, 3)  # a probe that finds a row bills a read


def test_a_write_of_another_process_is_in_the_next_answer(
    quick: Process, plain: Process, rows: dict[str, records.Comment]
) -> None:
    for number in range(3):
        quick.client.get(PAGE)
        made = plain.client.post(PAGE, json={"name": "Ann", "body": f"new text {number}"}).json
        assert made is not None
        assert f"new text {number}" in quick.client.get(PAGE).text
        one = f"/api/v1/comments/{made['comment']['id']}"
        token = {"Authorization": f"Bearer {made['token']}"}
        plain.client.patch(one, json={"body": f"other text {number}"}, headers=token)
        assert f"other text {number}" in quick.client.get(PAGE).text


def test_a_directory_that_is_too_old_is_not_trusted_though_nothing_has_changed(
    engine: inprocess.Engine, quick: Process, plain: Process, rows: dict[str, records.Comment]
) -> None:
    quick.client.get(PAGE)
    fold(plain)
    quick.now += materialized.CACHE_MAX_AGE
    with testing.meter(engine) as cost:
        quick.client.get(PAGE)
    assert cost.reads == 1  # the directory, again


def test_an_answer_stands_no_longer_than_the_settings_of_the_site(
    quick: Process, rows: dict[str, records.Comment]
) -> None:
    assert quick.client.get(PAGE).headers["Cache-Control"] == "no-cache"
    with quick.store.context():
        sites.change("demo", cdn_seconds=9)
    assert "s-maxage=9" in quick.client.get(PAGE).headers["Cache-Control"]
    with quick.store.context():
        sites.change("demo", query_keys=["id"])
    quick.client.get(PAGE)
    assert quick.asked == 3


def test_a_ranking_that_expires_is_looked_for_every_time(
    quick: Process, rows: dict[str, records.Comment]
) -> None:
    best = f"{PAGE}&order=best&limit=2"
    for _ in range(3):
        first = quick.client.get(best)
    assert quick.asked == 1  # the first page is of the ranking that the directory names
    for _ in range(3):
        quick.client.get(f"{best}&cursor={first.get_json()['cursor']}")
    assert quick.asked == 1 + 3


def test_a_store_that_does_not_answer_is_told_as_ever(
    quick: Process, rows: dict[str, records.Comment], engine: inprocess.Engine
) -> None:
    quick.client.get(PAGE)
    quick.store.deadline = 0.2
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(replays, "_PATIENCE", 0.1)
        engine.close()
        response = quick.client.get(PAGE)
    assert response.status_code == 503
    assert response.headers["Retry-After"]


def test_a_question_too_long_to_be_remembered_is_answered(
    quick: Process, rows: dict[str, records.Comment]
) -> None:
    long = f"{PAGE}{'&' * replays._LONGEST}"
    for _ in range(2):
        assert quick.client.get(long).data == quick.client.get(PAGE).data
    assert quick.asked == 3


def test_what_one_request_probed_is_nothing_to_the_next(
    engine: inprocess.Engine, open_store: datastore.Store, rows: dict[str, records.Comment]
) -> None:
    process = Process(engine, trees.SETTINGS)
    below = f"/api/v1/comments/{rows['1.1.1'].id}/replies"
    with process.store.context():
        assert process.client.get(below).status_code == 200
        site = sites.get("demo")
        posting.retract(rows["1.1.1"].id, author_id="g:1.1.1", revision=None, now=trees.START)
        # It probes, finds a change, and asks Flask, which makes no page of it.
        assert process.client.get(below).status_code == 404
        trees.post(site, "what came since")
        assert "what came since" in process.client.get(PAGE).text
