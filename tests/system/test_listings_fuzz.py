"""Any query for a listing returns a page or a refusal that names the invalid parameter.

Values are valid, valid for a different site or thread, damaged, or random text. JSON and HTML give
the same status. No query causes an internal error.
"""

from urllib.parse import quote

import pytest
from flask.testing import FlaskClient
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from comments.domain import records
from comments.reading.compaction import compactor
from comments.store import connection
from tests.support.threads import sample_threads

API, HTML = "/api/v1/sites/demo/comments", "/embed/demo"
ORDERS = ("thread", "recent", "best", "oldest", "newest")
ASKED = ("limit", "order", "cursor", "around")

Drawn = dict[str, str]


@pytest.fixture
def values(
    open_store: connection.Store, site: records.Site, client: FlaskClient
) -> dict[str, list[str]]:
    """Return valid, foreign and damaged values for each parameter."""
    with open_store.context():
        rows = sample_threads.grow(site, sample_threads.TREE)
        foreign = sample_threads.grow(site, {"a": {"b": {}}}, thread="other")
        assert (
            compactor.compact(sample_threads.SETTINGS.scheme, sample_threads.name_of(site))
            is not None
        )
    held: list[str] = []
    for thread in ("page", "other"):
        held += [
            client.get(f"{API}?thread={thread}&order={order}&limit=1").json["cursor"]
            for order in ORDERS
        ]
    held += [client.get(f"{API}?thread=page&limit=1&parent=root").json["cursor"]]
    cut = [cursor[: len(cursor) // 2] for cursor in held] + [cursor[1:] for cursor in held]
    swapped = [held[0].rpartition(".")[0] + "." + held[1].rpartition(".")[2]]
    ids = [rows["1"].id, rows["1.1.1"].id, foreign["a"].id, "a" * 26, "A" * 26, "root", ""]
    return {
        "thread": ["page", "other", "nobody", ""],
        "limit": ["1", "3", "200", "0", "201", "-1", "1.5", "1e2", "\u0661", "", "9" * 30],
        "order": [*ORDERS, "worst", "", "THREAD"],
        "cursor": [*held, *cut, *swapped, "", ".", "..", "e30.x", "\u0000", "\U0001f388"],
        "parent": ids,
        "around": ids,
        "below": ids,
    }


SLOW = settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
PICKS = st.dictionaries(
    st.sampled_from(("limit", "order", "cursor", "parent", "around", "below")),
    st.integers(0, 99) | st.text(max_size=20),
    max_size=4,
)


def drawn(values: dict[str, list[str]], picks: dict[str, int | str]) -> Drawn:
    """Replace each number by a prepared value; leave texts unchanged."""
    return {
        name: values[name][pick % len(values[name])] if isinstance(pick, int) else pick
        for name, pick in picks.items()
    }


def url(path: str, query: Drawn) -> str:
    return path + "?" + "&".join(f"{name}={quote(value, safe='')}" for name, value in query.items())


@pytest.mark.slow
@SLOW
@given(thread=st.integers(0, 3), picks=PICKS)
@example(thread=0, picks={"order": 2, "cursor": 2})
@example(thread=0, picks={"parent": 0, "limit": 0})
@example(thread=0, picks={"around": 2})
def test_any_query_is_a_page_or_a_refusal_that_names_its_field(
    client: FlaskClient, values: dict[str, list[str]], thread: int, picks: dict[str, int | str]
) -> None:
    query = drawn(values, {"thread": thread} | picks)  # type: ignore[operator]
    said = {}
    for path in (API, HTML, f"{HTML}/fragment"):
        response = client.get(url(path, query), headers={"Accept-Encoding": "gzip"})
        assert response.status_code in {200, 400, 404}, response.text
        said[path] = response.status_code
        if path == API and response.status_code == 400:
            assert response.json["field"] in {*query, "thread"}
        if path == API and response.status_code == 404:
            assert {"parent", "around"} & query.keys()
        if path != API and response.status_code == 400:
            assert any(name in response.text for name in query)
    assert said[HTML] == said[f"{HTML}/fragment"]
    if not {"parent", "below"} & query.keys():
        assert said[HTML] == said[API]


@SLOW
@given(picks=PICKS, which=st.integers(0, 6))
def test_any_query_of_a_subtree_is_a_page_or_a_refusal(
    client: FlaskClient, values: dict[str, list[str]], picks: dict[str, int | str], which: int
) -> None:
    query = drawn(values, {name: pick for name, pick in picks.items() if name in ASKED})
    comment_id = values["below"][which]
    response = client.get(url(f"/api/v1/comments/{quote(comment_id)}/replies", query))
    assert response.status_code in {200, 400, 404}, response.text
    if response.status_code == 400:
        assert response.json["field"] in query
