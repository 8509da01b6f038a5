"""The response cache returns exactly what Flask would return now, including every header.

Two processes serve one store: one has the cache, the other calls Flask for every request. Both
processes give the same response to any request, whichever process has written before.
"""

import random
import string
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from comments import app as apps
from comments.domain import records
from comments.posting import own_comment
from comments.reading.materialized import view_cache
from comments.sites import site_settings
from comments.store import connection
from comments.web.http import response_cache
from datastore_emulator import inprocess, testing
from tests.support import datastores
from tests.support.threads import sample_threads
from tests.support.threads.cache_twins import (
    GZIP,
    OTHERS,
    PAGE,
    SITE,
    Process,
    Rows,
    answer,
    compact,
    write,
)


def questions(rows: Rows) -> Iterator[str]:
    """Yield URLs of possible requests; some are invalid."""
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
    """Return possible request headers."""
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
def test_a_cached_response_equals_flasks(quick: Process, plain: Process, several: Rows) -> None:
    chance = random.Random(1)
    asked = list(questions(several))
    tags = ['"none"']
    written = 0
    for step in range(600):
        if step % 60 == 59:
            written += write(chance.choice((quick, plain)), several, chance)
        if step % 150 == 149:
            compact(quick)
        url, method = chance.choice(asked), chance.choice(("GET", "GET", "HEAD"))
        sent = headers(chance, tags)
        ours = answer(quick.client.open(url, method=method, headers=sent))
        theirs = answer(plain.client.open(url, method=method, headers=sent))
        assert ours == theirs, (step, method, url, sent)
        tags = [*tags[-8:], dict(ours[1]).get("ETag", '"none"')]
    assert written == 10
    assert plain.asked - quick.asked > 60  # The cache answered enough requests


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
def test_any_request_gets_flasks_response(
    quick: Process,
    plain: Process,
    several: Rows,
    steps: list[tuple[int, str, dict[str, str], str | None]],
) -> None:
    """The examples share one store, so the responses must be equal in any state of the store."""
    asked = list(questions(several))
    last = plain.client.get(PAGE).headers["ETag"]
    tags = dict.fromkeys(asked, last)  # Each URL's last ETag
    for place, method, fields, then in steps:
        url = asked[place % len(asked)]
        sent = {name: value.replace("{0}", tags[url]) for name, value in fields.items()}
        sent = {name: value.replace("{1}", last) for name, value in sent.items()}
        ours = answer(quick.client.open(url, method=method, headers=sent))
        assert ours == answer(plain.client.open(url, method=method, headers=sent))
        last = dict(ours[1]).get("ETag", '"none"')
        tags[url] = last
        if then:
            write(quick, several, random.Random(place))


def test_flask_is_called_once_for_each_coding(quick: Process, several: Rows) -> None:
    for _ in range(5):
        tag = quick.client.get(PAGE).headers["ETag"]
        assert quick.client.get(PAGE, headers=GZIP).headers["Content-Encoding"] == "gzip"
        assert quick.client.head(PAGE).status_code == 200
        assert quick.client.get(PAGE, headers={"If-None-Match": tag}).status_code == 304
    assert quick.asked == 2


def test_every_response_makes_its_own_probe(
    engine: inprocess.Engine, quick: Process, plain: Process, several: Rows
) -> None:
    write(plain, several, random.Random(2))
    quick.client.get(PAGE)
    with testing.meter(engine) as cost:
        for _ in range(3):
            quick.client.get(PAGE)
    assert (quick.asked, cost.reads) == (1, 3)  # Each probe that finds a row bills a read


def test_a_write_of_another_process_is_in_the_next_response(
    quick: Process, plain: Process, several: Rows
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


def test_a_directory_that_is_too_old_is_read_again_even_without_changes(
    engine: inprocess.Engine, quick: Process, plain: Process, several: Rows
) -> None:
    quick.client.get(PAGE)
    compact(plain)
    quick.now += view_cache.CACHE_MAX_AGE
    with testing.meter(engine) as cost:
        quick.client.get(PAGE)
    assert cost.reads == 1  # Reads the directory again


def test_a_change_of_the_sites_settings_invalidates_cached_responses(
    quick: Process, several: Rows
) -> None:
    assert quick.client.get(PAGE).headers["Cache-Control"] == "no-cache"
    with quick.store.context():
        site_settings.change("demo", cdn_seconds=9)
    assert "s-maxage=9" in quick.client.get(PAGE).headers["Cache-Control"]
    with quick.store.context():
        site_settings.change("demo", query_keys=["id"])
    quick.client.get(PAGE)
    assert quick.asked == 3


def test_pages_of_an_expiring_ranking_are_not_cached(quick: Process, several: Rows) -> None:
    best = f"{PAGE}&order=best&limit=2"
    for _ in range(3):
        first = quick.client.get(best)
    assert quick.asked == 1  # The first page's ranking does not expire
    for _ in range(3):
        quick.client.get(f"{best}&cursor={first.get_json()['cursor']}")
    assert quick.asked == 1 + 3


def test_a_store_that_does_not_answer_is_still_reported(
    quick: Process, several: Rows, engine: inprocess.Engine
) -> None:
    quick.client.get(PAGE)
    quick.store.deadline = 0.2
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(response_cache, "PATIENCE", 0.1)
        engine.close()
        response = quick.client.get(PAGE)
    assert response.status_code == 503
    assert response.headers["Retry-After"]


def test_a_query_too_long_to_be_cached_is_answered(quick: Process, several: Rows) -> None:
    long = f"{PAGE}{'&' * response_cache._LONGEST}"
    for _ in range(2):
        assert quick.client.get(long).data == quick.client.get(PAGE).data
    assert quick.asked == 3


def test_a_requests_probe_is_not_reused_by_the_next_request(
    datastore: datastores.Datastore, open_store: connection.Store, several: Rows
) -> None:
    process = Process(datastore, sample_threads.SETTINGS)
    below = f"/api/v1/comments/{several['1.1.1'].id}/replies"
    with process.store.context():
        assert process.client.get(below).status_code == 200
        site = site_settings.get("demo")
        own_comment.retract(
            several["1.1.1"].id, author_id="g:1.1.1", revision=None, now=sample_threads.START
        )
        # The cache probes the thread, finds a change, and calls Flask, which returns 404.
        assert process.client.get(below).status_code == 404
        sample_threads.post(site, "what came since")
        assert "what came since" in process.client.get(PAGE).text


def test_the_warm_up_reads_threads_and_writes_nothing(
    engine: inprocess.Engine, quick: Process, several: Rows
) -> None:
    with testing.meter(engine) as cost, pytest.MonkeyPatch.context() as patch:
        patch.setattr(apps, "WARMING", 60.0)
        apps.warm_up(quick.app)
    assert (cost.writes, cost.deletes) == (0, 0)
    assert all(is_read(quick, thread) for thread in ("page", *OTHERS))


def test_the_warm_up_reads_a_limited_number_of_threads(
    quick: Process, several: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(apps, "WARMING", 60.0)
    monkeypatch.setattr(apps, "WARMED", 2)
    apps.warm_up(quick.app)
    assert sum(is_read(quick, thread) for thread in ("page", *OTHERS)) == 2


def is_read(process: Process, thread: str) -> bool:
    """Return whether the process has cached a thread's directory."""
    place = ("directory", records.ThreadName("demo", thread))
    with process.store.context():
        held = view_cache.HOLDINGS.get()
        return held.cache.get(place) is not None
