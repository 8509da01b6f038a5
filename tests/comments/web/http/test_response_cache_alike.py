"""The cache builds correct first pages from earlier responses, even those for other threads."""

from typing import Any

import pytest

from comments import app as apps
from comments.domain import presentation, records
from comments.reading.materialized import view_cache
from comments.sites import site_settings
from comments.web.http import responses
from datastore_emulator import inprocess, testing
from tests.support.threads.cache_twins import GZIP, OTHERS, PAGE, SITE, Process, Rows, answer, post


@pytest.mark.parametrize("headers", [{}, GZIP])
def test_flask_is_called_once_for_the_first_pages_of_a_sites_threads(
    quick: Process, plain: Process, several: Rows, headers: dict[str, str]
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
    engine: inprocess.Engine, quick: Process, several: Rows
) -> None:
    quick.client.get(PAGE)
    with testing.meter(engine) as cost:
        quick.client.get(f"{SITE}?thread=other")
    assert (quick.asked, cost.reads, cost.writes) == (1, 1, 0)


@pytest.mark.parametrize("headers", [{}, GZIP])
def test_after_the_warm_up_the_first_reader_gets_a_cached_response(
    engine: inprocess.Engine,
    quick: Process,
    plain: Process,
    several: Rows,
    headers: dict[str, str],
) -> None:
    with testing.meter(engine) as cost, pytest.MonkeyPatch.context() as patch:
        patch.setattr(apps, "WARMING", 60.0)
        apps.warm_up(quick.app)
    assert (cost.writes, cost.deletes) == (0, 0)
    for thread in ("page", *OTHERS):
        assert is_read(quick, thread)
    before = quick.asked
    for thread in ("page", *OTHERS):
        sent = {"query_string": {"thread": thread}, "headers": headers}
        assert answer(quick.client.get(SITE, **sent)) == answer(plain.client.get(SITE, **sent))
    # The warm-up calls Flask once in each coding for a complete page and for a page that has a next
    # page.
    assert quick.asked == before == 4


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


def test_a_change_in_another_thread_is_in_its_first_response(
    quick: Process, plain: Process, several: Rows
) -> None:
    quick.client.get(PAGE)
    url = f"{SITE}?thread=other"
    assert plain.client.post(url, json={"name": "Ann", "body": "just now"}).status_code == 201
    assert "just now" in quick.client.get(url).text
    assert quick.asked == 1


@pytest.mark.parametrize("headers", [{}, GZIP])
def test_flask_is_not_called_again_after_changes(
    quick: Process, plain: Process, several: Rows, headers: dict[str, str]
) -> None:
    before = quick.client.get(PAGE, headers=headers).headers["ETag"]
    for number in range(3):
        post(plain, several["1"], f"new text {number}")
        known = {**headers, "If-None-Match": before}
        found = answer(quick.client.get(PAGE, headers=known))
        assert found == answer(plain.client.get(PAGE, headers=known))
        assert found[0] == "200 OK"
        before = dict(found[1])["ETag"]
    post(plain, several["1"], "told by another process")
    known = {**headers, "If-None-Match": plain.client.get(PAGE, headers=headers).headers["ETag"]}
    assert answer(quick.client.get(PAGE, headers=known)) == answer(
        plain.client.get(PAGE, headers=known)
    )
    assert quick.client.get(PAGE, headers=known).status_code == 304
    assert quick.asked == 1


def test_a_changed_page_is_built_once_and_not_for_clients_that_have_it(
    quick: Process, plain: Process, several: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    quick.client.get(PAGE)
    post(plain, several["1"], "a change")
    known = {"If-None-Match": plain.client.get(PAGE).headers["ETag"]}
    sought, made = [], []
    of_thread, fragments = responses.of_thread, presentation.Rows.json

    def seek(*asked: Any, **named: Any) -> object:
        sought.append(asked)
        return of_thread(*asked, **named)

    def make(rows: presentation.Rows) -> bytes:
        if rows.comments:  # not the list of pinned comments, which is empty
            made.append(rows)
        return fragments(rows)

    monkeypatch.setattr(responses, "of_thread", seek)
    monkeypatch.setattr(presentation.Rows, "json", make)
    assert quick.client.get(PAGE, headers=known).status_code == 304
    assert (len(sought), len(made)) == (1, 0)
    for _ in range(3):
        assert quick.client.get(PAGE).status_code == 200
    assert (len(sought), len(made), quick.asked) == (2, 1, 1)


def test_an_uncompacted_thread_is_left_to_flask_without_a_log_line(
    engine: inprocess.Engine,
    quick: Process,
    plain: Process,
    several: Rows,
    caplog: pytest.LogCaptureFixture,
) -> None:
    for process in (quick, plain):
        process.client.get(PAGE)
    asked = f"{SITE}?thread=raw"  # a thread that was never compacted
    costs = []
    for process in (quick, plain):
        with testing.meter(engine) as cost:
            found = answer(process.client.get(asked))
        assert found[0] == "200 OK"
        costs.append((found, cost.reads))
    assert costs[0] == costs[1]
    assert quick.asked == 2
    assert "without Flask" not in caplog.text


def test_an_error_in_the_cache_is_logged_and_the_request_goes_to_flask(
    quick: Process, plain: Process, several: Rows, caplog: pytest.LogCaptureFixture
) -> None:
    quick.client.get(PAGE)
    caplog.clear()

    def fail(*_arguments: object, **_named: object) -> None:
        raise RuntimeError("a planned fault")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("comments.reading.materialized.first_page.FirstPage.page", fail)
        failed = [process.client.get(f"{SITE}?thread=other") for process in (quick, plain)]
    told = [each for each in caplog.records if each.levelname == "WARNING"]
    assert [each.message for each in told] == ["a page could not be made without Flask"]
    assert "a planned fault" in told[0].exc_text  # type: ignore[operator]
    assert [each.status_code for each in failed] == [500, 500]
    assert failed[0].get_json()["code"] == failed[1].get_json()["code"]
    assert quick.asked == 2


def test_another_threads_response_has_the_sites_current_settings(
    quick: Process, several: Rows
) -> None:
    quick.client.get(PAGE)
    with quick.store.context():
        site_settings.change("demo", cdn_seconds=9)
    url = f"{SITE}?thread=other"
    assert "s-maxage=9" in quick.client.get(url).headers["Cache-Control"]
