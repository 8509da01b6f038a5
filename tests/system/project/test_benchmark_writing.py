"""The benchmark of writing detects lost, doubled and disordered posts."""

import pytest
from flask.testing import FlaskClient
from hypothesis import given
from hypothesis import strategies as st

from benchmarks import clients
from benchmarks.writing import challenges, results, stored_posts
from comments.domain import records
from comments.store import connection
from tests.support.people import api_requests, proof_solver
from tests.support.threads import sample_threads


def _problems(before: str, acknowledged: list[str], stored: str) -> list[str]:
    return list(stored_posts.problems(list(before), list(map(list, acknowledged)), list(stored)))


@given(st.lists(st.integers(0, 3)))
def test_any_interleaving_of_the_clients_orders_is_in_order(
    clients: list[int],
) -> None:
    stored = [f"{client} {place}" for place, client in enumerate(clients)]
    acknowledged = [[each for each in stored if each[0] == client] for client in "0123"]
    assert list(stored_posts.problems([], acknowledged, stored)) == []
    assert list(stored_posts.problems(["old"], acknowledged, ["old", *stored])) == []


def test_lost_doubled_invented_and_disordered_posts_are_detected() -> None:
    assert _problems("ab", ["cd", "e"], "acbed") == []
    assert _problems("ab", ["c"], "ab") == ["c was acknowledged and is missing"]
    assert _problems("ab", ["c"], "bc") == ["a was acknowledged and is missing"]
    assert _problems("ab", ["c"], "acbc") == ["c is stored 2 times"]
    assert _problems("ab", ["c"], "abcd") == ["d was not acknowledged"]
    assert _problems("ab", ["cd", "ef"], "abdcef") == [
        "the posts of client 0 are not in the order of their acknowledgments"
    ]


@pytest.mark.slow
def test_ids_are_read_from_all_pages(
    client: FlaskClient, store: connection.Store, site: records.Site
) -> None:
    made = [sample_threads.post(site, f"c{number}", thread="t").id for number in range(201)]

    def ask(path: str) -> tuple[int, bytes, str]:
        answer = client.get(path)
        return answer.status_code, answer.data, ""

    assert stored_posts.stored(ask, api_requests.THREAD) == made


@pytest.mark.settings(proof_of_work=50, form_seconds=0)
def test_a_solved_challenge_is_accepted(client: FlaskClient, site: records.Site) -> None:
    challenge = api_requests.answer(client.get(proof_solver.CHALLENGE))
    proof = challenges.solution(challenge)
    assert proof_solver.post(client, proof=proof).status_code == 201


def test_ratios_are_medians_of_the_rounds_ratios() -> None:
    found = results.Results()
    found.add("reply, ms", results.THIS, 10.0, 40.0, 30.0)
    found.add("reply, ms", results.WSGI, 1.0, 2.0, 10.0)
    assert found.ratio("reply, ms", results.WSGI) == 10.0
    assert found.median("reply, ms") == 30.0
    assert results.chunks([1, 2, 9, 4, 5, 6], 2) == [2, 5]


def test_a_turn_counts_posts_of_each_client() -> None:
    turn = clients.Turn(2.0, [[0.1] * 99, [0.5]], [[b""] * 99, [b""]])
    assert (turn.posts, turn.rate, turn.median, turn.late) == (100, 50.0, 0.1, 0.5)
