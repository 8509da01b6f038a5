"""The benchmark of writing measures every part, and detects lost, doubled and disordered posts."""

import pytest
from flask.testing import FlaskClient
from hypothesis import given
from hypothesis import strategies as st

from benchmarks import __main__ as benchmarks
from benchmarks.serving import posters
from benchmarks.writing import __main__ as writing
from benchmarks.writing import challenges, results, stored_posts
from comments.domain import records
from comments.store import connection
from tests.support.people import api_requests, proof_solver
from tests.support.threads import sample_threads

ROWS = (
    "| first page of 100, p50 ms |",
    "| page right after a post, p50 ms |",
    "| counts of 50 pages, billed reads |",
    "| a reply alone, p50 ms |",
    "| eight in one thread, posts/s |",
    "| eight in eight threads, fewest posts of a client |",
    "| start to the first answer, s |",
    "| memory after a start (PSS), MB |",
    "| completion, processor s |",
    "| import, comments per processor second |",
)
BARS = (
    "alone", "alone, limits", "eight in one thread", "eight in eight threads",
    "the same, limits", "the same, p99", "the same, shares", "page 100 / WSGI", "page 100 / Flask",
    "page after post", "counts", "start", "memory", "commands",
    "import",
)  # fmt: skip


@pytest.mark.slow
@pytest.mark.embedded
def test_a_quick_run_prints_every_row_and_bar_and_finds_all_replies(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit):
        writing.main(["--quick", "--rounds", "1"])
    printed = capsys.readouterr().out
    assert "| | this | with limits | Flask floor | WSGI floor |\n" in printed
    for row in ROWS:
        assert f"\n{row}" in printed
    for bar in BARS:
        assert f"\nwriting {bar} " in printed
    (kept,) = (line for line in printed.splitlines() if line.startswith("writing kept "))
    assert " held" in kept


def test_the_benchmark_is_one_of_the_benchmarks() -> None:
    assert benchmarks.BENCHMARKS["writing"] is writing.bars


@pytest.mark.parametrize(
    "arguments", [["--parts", "posts,lunch"], ["--beside", "/nowhere"], ["--rounds", "many"]]
)
def test_a_wrong_option_is_refused(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as refused:
        writing.asked(arguments)
    assert refused.value.code == 2
    assert f"argument {arguments[0]}" in capsys.readouterr().err


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


def test_ids_are_read_from_all_pages(
    client: FlaskClient, store: connection.Store, site: records.Site
) -> None:
    made = [sample_threads.post(site, f"c{number}", thread="t").id for number in range(401)]

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
    found.add("starts, s", results.THIS, 2.0)
    assert found.ratio("reply, ms", results.WSGI) == 10.0
    assert found.median("reply, ms") == 30.0
    assert results.table(found).splitlines()[2:] == [
        "| reply, ms | 30 (10.00 x) | 2 |",
        "| starts, s | 2 |  |",
    ]
    assert results.chunks([1, 2, 9, 4, 5, 6], 2) == [2, 5]


def test_a_turn_counts_posts_of_each_client() -> None:
    turn = posters.Turn(2.0, [[0.1] * 99, [0.5]], [[b""] * 99, [b""]])
    assert (turn.posts, turn.rate, turn.median, turn.late) == (100, 50.0, 0.1, 0.5)
    assert turn.shares == [1, 99]
