"""An export is one moment of the site, contains no secrets, and repeats itself."""

import itertools
import threading
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import grpc
import pytest

from comments import errors
from comments.domain import records
from comments.domain.counters import counting
from comments.sites import site_settings
from comments.store import connection, transactions
from comments.store.models import comment_rows
from tests.support import datastores, store_interceptors
from tests.support.exporting import site_exports
from tests.support.histories import counter_oracle
from tests.support.threads import sample_exports, sample_threads

WRITERS = 4
EXPORTS = 4


def comments_of(path: Path) -> list[dict[str, Any]]:
    return site_exports.of_kind(path, "comment")


def test_two_exports_of_an_unchanged_site_differ_only_in_the_time(
    site: records.Site, store: connection.Store, tmp_path: Path
) -> None:
    sample_threads.grow(site, sample_threads.TREE)
    first = site_exports.save(tmp_path / "1.jsonl", "demo")
    later = sample_exports.NOW + timedelta(days=1)
    second = site_exports.save(tmp_path / "2.jsonl", "demo", now=later)
    one, two = first.read_bytes().split(b"\n"), second.read_bytes().split(b"\n")
    assert one[0] != two[0]
    assert one[1:] == two[1:]


def test_comments_come_in_reading_order_with_their_places(
    site: records.Site, store: connection.Store, tmp_path: Path
) -> None:
    for thread in ("b", "a"):
        grown = sample_threads.grow(site, sample_threads.TREE, thread=thread)
    sample_threads.retract(grown["1.1"])
    found = comments_of(site_exports.save(tmp_path / "x.jsonl", "demo"))
    assert [each["thread"] for each in found] == ["a"] * 8 + ["b"] * 8
    assert [each.get("text") for each in found[8:]] == sample_threads.ORDER
    assert [each["slug"] for each in found[8:]] == [
        "1", "1-1", "1-1-1", "1-1-2", "1-2", "2", "2-1", "3",
    ]  # fmt: skip
    assert found[1]["status"] == "retracted"
    assert "text" not in found[1]
    assert found[1]["author"] == {}
    (end,) = site_exports.of_kind(tmp_path / "x.jsonl", "end")
    assert (end["threads"], end["comments"]) == (2, 16)
    assert end["statuses"] == {"approved": 15, "retracted": 1}


def test_a_site_that_does_not_exist_is_refused_and_leaves_no_file(
    store: connection.Store, tmp_path: Path
) -> None:
    with pytest.raises(errors.NotFound):
        site_exports.save(tmp_path / "x.jsonl", "none")
    assert list(tmp_path.iterdir()) == []


def test_a_site_that_takes_too_long_is_refused_and_leaves_no_file(
    site: records.Site, store: connection.Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sample_threads.grow(site, sample_threads.TREE)
    left = iter([9.0, 5.0, 1.0])
    monkeypatch.setattr(connection, "seconds_left", lambda: next(left, 0.0))
    with pytest.raises(errors.ExportFailed, match="the export of demo was not written: reading"):
        site_exports.save(tmp_path / "x.jsonl", "demo")
    assert list(tmp_path.iterdir()) == []


def test_a_failure_of_the_store_starts_the_file_again(
    site: records.Site, store: connection.Store, faults: store_interceptors.Faults, tmp_path: Path
) -> None:
    sample_threads.grow(site, sample_threads.TREE)
    whole = site_exports.save(tmp_path / "1.jsonl", "demo").read_bytes()
    faults.plan["RunQuery", faults.calls["RunQuery"] + 2] = (
        "before",
        grpc.StatusCode.UNAVAILABLE,
    )
    assert site_exports.save(tmp_path / "2.jsonl", "demo").read_bytes() == whole


def test_an_export_contains_addresses_only_on_request_and_secrets_never(
    site: records.Site, store: connection.Store, tmp_path: Path
) -> None:
    author = records.Author("Ada", email="ada@private.example", id="g:ada")
    sealed = sample_threads.post(site, "x", author=author).author.email
    assert sealed
    assert "@" not in sealed
    site_settings.change(
        "demo",
        moderators=["mod@private.example"],
        turnstile=lambda _: records.Turnstile("turnstile-key", "turnstile-secret"),
    )
    plain = site_exports.save(tmp_path / "1.jsonl", "demo").read_text()
    for hidden in ("private.example", sealed, "turnstile", "email"):
        assert hidden not in plain
    everything = site_exports.save(tmp_path / "2.jsonl", "demo", site_exports.ALL)
    assert comments_of(everything)[0]["author"]["email"] == "ada@private.example"
    assert site_exports.of_kind(everything, "settings")[0]["moderators"] == ["mod@private.example"]
    assert site_exports.lines(everything)[0]["includes"] == ["addresses", "audit-log"]
    for hidden in (sealed, "turnstile"):
        assert hidden not in everything.read_text()


def test_an_export_does_not_see_what_people_write_meanwhile(
    site: records.Site, datastore: datastores.Datastore, tmp_path: Path
) -> None:
    others = datastore.connect()
    with others.context():
        first = [sample_threads.post(site, "first", thread=thread) for thread in ("a", "b")]

    queries = 0

    def post() -> None:
        with others.context():
            sample_threads.post(site, "reply", first[1].id, thread="b")
            sample_threads.post(site, "other", thread="c")

    def write(method: str, _: object, proceed: Callable[[], Any]) -> Any:
        """Write in the last thread, and in a new one, after the first threads were read."""
        nonlocal queries
        queries += method == "RunQuery"
        if queries == 2:
            queries += 1
            writer = threading.Thread(target=post)
            writer.start()
            writer.join()
        return proceed()

    with datastore.connect(write).context():
        path = site_exports.save(tmp_path / "x.jsonl", "demo")
    assert queries > 2
    assert [each["text"] for each in comments_of(path)] == ["first", "first"]
    assert [each["id"] for each in site_exports.of_kind(path, "thread")] == ["a", "b"]


@pytest.mark.slow
def test_an_export_beside_four_writers_is_one_moment(
    site: records.Site, datastore: datastores.Datastore, store: connection.Store, tmp_path: Path
) -> None:
    ended = threading.Event()

    def write(number: int) -> None:
        """Post discussions of five comments below each other, and retract every third root."""
        with datastore.connect().context():
            for count in itertools.takewhile(lambda _: not ended.is_set(), itertools.count()):
                thread, above = f"page {count % 3}", None
                rows = []
                for depth in range(5):
                    text = f"{number}.{count}.{depth}"
                    rows.append(sample_threads.post(site, text, above, thread=thread))
                    above = rows[-1].id
                if count % 3 == 0:
                    sample_threads.retract(rows[0])

    writers = [threading.Thread(target=write, args=(number,)) for number in range(WRITERS)]
    for each in writers:
        each.start()
    try:
        sizes = [_one_moment(tmp_path / f"{number}.jsonl") for number in range(EXPORTS)]
    finally:
        ended.set()
        for each in writers:
            each.join()
    assert sizes == sorted(sizes)
    assert sizes[0] < sizes[-1]


def _one_moment(path: Path) -> int:
    """Export beside writers, and compare the export with the counters of the same moment."""

    def body() -> dict[counting.Scope, dict[str, int]]:
        site_exports.save(path, "demo")
        return counter_oracle.stored()

    stored = transactions.snapshot(body)
    found = comments_of(path)
    seen: set[str] = set()
    counted: dict[str, Counter[str]] = {}
    for each in found:
        assert each.get("parent", each["id"]) in seen | {each["id"]}
        seen.add(each["id"])
        counted.setdefault(each["thread"], Counter())[each["status"]] += 1
    for thread, numbers in counted.items():
        key = comment_rows.thread_key_name(records.ThreadName("demo", thread))
        expected = stored[counting.thread_scope(key)]
        assert {name: expected.get(name, 0) for name in numbers} == numbers
    (end,) = site_exports.of_kind(path, "end")
    assert end["comments"] == len(found) == sum(end["statuses"].values())
    return len(found)
