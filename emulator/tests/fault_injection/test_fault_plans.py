"""Fault plans: the struck calls, the client's view of the faults, and repeatable seeds."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc
import pytest

from datastore_emulator import errors, inprocess
from datastore_emulator.fault_injection import fault_plans, fault_rules
from datastore_emulator.server import grpc_server
from emulator.tests.support import service_calls
from emulator.tests.support.plan_builder import plan
from emulator.tests.support.service_calls import put_all
from tests.support import forked_programs, programs

PATIENCE = programs.PATIENCE
RANDOM = {
    "seed": 7,
    "rules": [
        {"rpc": "Commit", "probability": 0.5, "status": "ABORTED"},
        {"rpc": "Lookup", "probability": 0.2, "times": 3, "status": "INTERNAL"},
    ],
}
# The numbers of the calls, out of 20, that a plan with seed 7 strikes. If this list changes, seeds
# no longer reproduce their old results.
STRUCK = [1, 5, 6, 10, 13, 15, 18, 19]
# The number of results, at most nine, in each of twelve batches that a plan with this seed cuts.
CUT = [7, 4, 3, 0, 4, 3, 0, 0, 3, 4, 8, 9]

KILLED = """
import sys
from datastore_emulator import inprocess
from datastore_emulator.fault_injection import fault_plans
from datastore_emulator import protobufs
engine = inprocess.open_engine(sys.argv[1])
engine.install_faults(fault_plans.Plan.parse(sys.argv[2]))
request = protobufs.CommitRequest(project_id="test", mode=2)
request.mutations.add().upsert.key.path.add(kind="T", id=1)
engine.call("Commit", request)
"""

HUNG = """
import threading
from datastore_emulator import inprocess
from datastore_emulator.fault_injection import fault_plans
from datastore_emulator import protobufs
engine = inprocess.open_engine(None)
engine.install_faults(fault_plans.Plan.parse({"rules": [{"hang": True}]}))
request = protobufs.LookupRequest(project_id="test")
threading.Thread(target=engine.call, args=("Lookup", request)).start()
while not engine.fault_plan.log:
    pass
print("hangs", flush=True)
"""


def outcome(call: Callable[..., Any]) -> str:
    """Make a call and return the name of its status."""
    try:
        call()
    except grpc.RpcError as error:
        return error.code().name
    return "OK"


def run_python(program: str, *arguments: Any) -> subprocess.CompletedProcess[str]:
    environ = {**os.environ, "PYTHONPATH": str(Path.cwd())}
    return subprocess.run(
        [sys.executable, "-c", program, *map(str, arguments)],
        env=environ, capture_output=True, text=True, timeout=PATIENCE, check=False,
    )  # fmt: skip


@pytest.mark.parametrize("status", sorted(fault_rules.STATUSES))
def test_a_plan_answers_with_any_status(
    engine: inprocess.Engine, service: service_calls.Service, status: str
) -> None:
    engine.install_faults(plan({"rpc": "Lookup", "status": status, "message": "as planned"}))
    with pytest.raises(grpc.RpcError) as caught:
        service.get(service.key("T", 1))
    assert (caught.value.code().name, caught.value.details()) == (status, "as planned")


def test_before_nothing_is_applied_and_after_only_the_answer_is_lost(
    engine: inprocess.Engine, service: service_calls.Service
) -> None:
    for when, found in (("before", None), ("after", {"a": 1})):
        key = service.key("T", when)
        engine.install_faults(plan({"rpc": "Commit", "when": when, "status": "UNAVAILABLE"}))
        assert outcome(lambda key=key: service.put(key, a=1)) == "UNAVAILABLE"
        assert service.get(key) == found


def test_a_refusal_can_be_lost_like_any_answer(
    engine: inprocess.Engine, service: service_calls.Service
) -> None:
    engine.install_faults(plan({"when": "after", "call": 1, "status": "UNAVAILABLE"}))
    update = {"update": service.entity(service.key("T", 1))}
    assert outcome(lambda: service.commit(update)) == "UNAVAILABLE"
    assert outcome(lambda: service.commit(update)) == "NOT_FOUND"


def test_a_dropped_connection_is_unavailable_and_the_client_connects_again(
    engine: inprocess.Engine, service: service_calls.Service
) -> None:
    engine.install_faults(plan({"rpc": "Commit", "call": 1, "when": "after", "drop": True}))
    with pytest.raises(grpc.RpcError) as caught:
        service.put(service.key("T", 1), a=1)
    assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
    if not isinstance(caught.value, inprocess.CallError):
        assert "fault plan" not in str(
            caught.value.details()
        )  # The details come from the closed socket, not from an answer.
    # gRPC may send one more call over the dead connection before it notices.
    again = lambda: service.lookup(service.key("T", 1))  # noqa: E731 - called until it succeeds
    programs.wait_until(lambda: outcome(again) == "OK")
    assert len(again().found) == 1


def test_calls_are_picked_by_number_period_and_limit(
    engine: inprocess.Engine, near: service_calls.Service
) -> None:
    def pattern(rule: dict[str, Any]) -> list[int]:
        engine.install_faults(plan(rule | {"status": "ABORTED"}))
        return [n for n in range(1, 9) if outcome(near.begin) == "ABORTED"]

    assert pattern({}) == [1, 2, 3, 4, 5, 6, 7, 8]
    assert pattern({"call": 2}) == [2]
    assert pattern({"call": [2, 5, 5]}) == [2, 5]
    assert pattern({"every": 3}) == [3, 6]
    assert pattern({"every": 2, "times": 3}) == [2, 4, 6]
    assert pattern({"probability": 0}) == []
    assert pattern({"probability": 1, "times": 1}) == [1]
    assert pattern({"rpc": "Commit"}) == []


def test_a_rule_without_a_place_counts_all_calls_and_the_first_rule_wins(
    engine: inprocess.Engine, near: service_calls.Service
) -> None:
    engine.install_faults(
        plan({"call": 3, "status": "ABORTED"}, {"rpc": "Lookup", "every": 2, "status": "INTERNAL"})
    )
    get = lambda: near.get(near.key("T", 1))  # noqa: E731 - it is called twice
    seen = [outcome(each) for each in (get, near.begin, get, get, get)]
    assert seen == ["OK", "OK", "ABORTED", "OK", "INTERNAL"]
    assert engine.fault_plan.log == [
        fault_plans.Injection("Lookup", 3, 0, "status"),
        fault_plans.Injection("Lookup", 4, 1, "status"),
    ]


def struck(seed: int) -> list[int]:
    made = fault_plans.Plan.parse(RANDOM | {"seed": seed})
    made.install()
    for _ in range(20):
        with contextlib.suppress(errors.Injected):
            made.run("Commit", bytes, fault_plans.Caller())
    made.remove()
    return [injection.call for injection in made.log]


def test_a_seed_always_gives_the_same_faults() -> None:
    assert struck(7) == STRUCK
    assert struck(8) != STRUCK


def test_a_seed_gives_the_same_faults_in_threads(
    engine: inprocess.Engine, near: service_calls.Service
) -> None:
    engine.install_faults(fault_plans.Plan.parse(RANDOM))
    start = threading.Barrier(10)

    def work() -> None:
        start.wait(PATIENCE)
        for _ in range(2):
            outcome(lambda: near.put(near.key("T", 1)))
            outcome(lambda: near.get(near.key("T", 1)))

    threads = [threading.Thread(target=work) for _ in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    log = engine.fault_plan.log
    assert [each.call for each in log if each.place == "Commit"] == STRUCK
    assert len([each for each in log if each.place == "Lookup"]) == 3


def test_a_reinstalled_plan_starts_over(
    engine: inprocess.Engine, near: service_calls.Service
) -> None:
    made = plan({"rpc": "BeginTransaction", "call": 1, "status": "ABORTED"})
    for _ in range(2):
        engine.install_faults(made)
        assert [outcome(near.begin), outcome(near.begin)] == ["ABORTED", "OK"]
        assert len(made.log) == 1
    engine.install_faults(None)
    assert outcome(near.begin) == "OK"
    assert engine.fault_plan is None


def test_randomly_cut_batches_contain_all_results_together(
    engine: inprocess.Engine, service: service_calls.Service
) -> None:
    put_all(service, *((n, {"a": n}) for n in range(1, 31)))
    engine.install_faults(plan({"rpc": "RunQuery", "batch": 4}, seed=5))
    batches, cursor = [], b""
    while True:
        batch = service.batch(service.query(order=["a"], start_cursor=cursor))
        batches.append([each.entity.key.path[-1].id for each in batch.entity_results])
        if batch.more_results != 1:
            break
        cursor = batch.end_cursor
    assert {len(each) for each in batches} == {0, 1, 2, 3, 4}
    assert [n for each in batches for n in each] == list(range(1, 31))
    assert service.names(order=["a"], offset=3, limit=9) == list(range(4, 13))
    assert service.names(order=["a"], limit=0) == []
    assert {each.action for each in engine.fault_plan.log} == {"batch"}
    engine.install_faults(None)
    assert len(service.batch(service.query(order=["a"])).entity_results) == 30


def test_a_seed_always_cuts_the_same_batches() -> None:
    rule = plan({"rpc": "RunQuery", "batch": 9}).rules[0]
    assert [rule.batch_size(n, seed=7, position=0) for n in range(1, 13)] == CUT


def test_a_delay_ends_at_the_clients_deadline(
    engine: inprocess.Engine, service: service_calls.Service
) -> None:
    engine.install_faults(
        plan(
            {"rpc": "Lookup", "call": 1, "delay": 0.01},
            {"rpc": "Lookup", "call": 2, "delay": 3600, "status": "ABORTED"},
        )
    )
    answers = [
        outcome(lambda each=each: service.call("Lookup", patience=each)) for each in (PATIENCE, 0.1)
    ]
    assert answers == ["OK", "DEADLINE_EXCEEDED"]


def test_a_hanging_commit_of_a_client_that_gives_up_is_not_applied(
    engine: inprocess.Engine, service: service_calls.Service
) -> None:
    engine.install_faults(plan({"rpc": "Commit", "hang": True}))
    request = {"mode": 2, "mutations": [{"upsert": service.entity(service.key("T", 1))}]}
    # On a busy machine, a request may expire before the server has seen it.
    while not engine.fault_plan.log:
        late = outcome(lambda: service.call("Commit", patience=0.5, **request))
        assert late == "DEADLINE_EXCEEDED"
    programs.wait_until(lambda: not engine.fault_plan.pending_count)
    engine.install_faults(None)
    assert service.get(service.key("T", 1)) is None


def test_removing_the_plan_or_closing_the_engine_releases_hanging_calls(
    engine: inprocess.Engine, near: service_calls.Service
) -> None:
    for release, status in ((lambda: engine.install_faults(None), "OK"), (engine.close, "CLOSED")):
        engine.install_faults(plan({"rpc": "Lookup", "hang": True}))
        answers = []
        thread = threading.Thread(
            target=lambda found: found.append(outcome(lambda: near.get(near.key("T", 1)))),
            args=(answers,),
        )
        thread.start()
        programs.wait_until(lambda: engine.fault_plan.log)
        release()
        thread.join(PATIENCE)
        assert answers == ["UNAVAILABLE" if status == "CLOSED" else "OK"]


def test_a_hanging_call_does_not_keep_a_server_from_stopping(
    engine: inprocess.Engine,
    make_service: type[service_calls.Service],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(grpc_server, "_GRACE", 0.1)
    engine.install_faults(plan({"rpc": "Lookup", "hang": True}))
    running = grpc_server.start(engine, "localhost", 0)
    with grpc.insecure_channel(f"localhost:{running.port}") as channel:
        service = make_service(channel)
        statuses = []
        caller = threading.Thread(
            target=lambda: statuses.append(outcome(lambda: service.get(service.key("T", 1))))
        )
        caller.start()
        programs.wait_until(lambda: engine.fault_plan.log)
        running.stop()
        caller.join(PATIENCE)
    programs.wait_until(lambda: not engine.fault_plan.pending_count)
    assert len(statuses) == 1


def test_a_hanging_thread_does_not_keep_a_process_from_ending() -> None:
    ended = run_python(HUNG)
    assert (ended.returncode, ended.stdout) == (0, "hangs\n")


def test_points_strike_only_the_engine_that_has_the_plan(
    engine: inprocess.Engine, near: service_calls.Service, make_service: type[service_calls.Service]
) -> None:
    engine.install_faults(plan({"point": "commit.before", "status": "INTERNAL"}))
    with inprocess.open_engine(None) as other:
        service = make_service(inprocess.Channel(other))
        service.put(service.key("T", 1))
    assert outcome(lambda: near.put(near.key("T", 1))) == "INTERNAL"


@pytest.mark.parametrize("point", sorted(fault_rules.POINTS))
def test_a_fault_at_a_point_leaves_all_or_nothing(
    engine: inprocess.Engine, service: service_calls.Service, point: str
) -> None:
    engine.install_faults(plan({"point": point, "call": 1, "status": "UNAVAILABLE"}))
    both = [{"insert": service.entity(service.key("T", n), a=n)} for n in (1, 2)]
    assert outcome(lambda: service.commit(*both)) == "UNAVAILABLE"
    found = [1, 2] if point == "commit.after" else []
    assert service.names("T") == service.names("T", order=["a"]) == found
    assert outcome(lambda: service.commit(*both)) == ("ALREADY_EXISTS" if found else "OK")
    assert [each.place for each in engine.fault_plan.log] == [point]


@pytest.mark.parametrize(
    ("rule", "is_there"),
    [
        ({"rpc": "Commit", "kill": True}, False),
        ({"rpc": "Commit", "when": "after", "kill": True}, True),
        *(
            ({"point": each, "kill": True}, each == "commit.after")
            for each in sorted(fault_rules.POINTS)
        ),
    ],
    ids=str,
)
def test_a_kill_sends_sigkill_at_that_point(
    tmp_path: Path,
    make_service: type[service_calls.Service],
    rule: dict[str, bool | str],
    is_there: bool,
) -> None:
    status, _ = forked_programs.run(KILLED, tmp_path / "data", json.dumps({"rules": [rule]}))
    assert status == -signal.SIGKILL
    with inprocess.open_engine(tmp_path / "data") as engine:
        service = make_service(inprocess.Channel(engine))
        assert (service.get(service.key("T", 1)) is not None) == is_there


def test_a_forked_child_can_use_a_plan_locked_by_its_parent(
    engine: inprocess.Engine, near: service_calls.Service
) -> None:
    engine.install_faults(plan({"rpc": "Lookup", "status": "ABORTED"}))
    with engine.fault_plan._lock:
        child = forked_programs.fork()
        if not child:
            try:
                os._exit(int(outcome(lambda: near.get(near.key("T", 1))) != "ABORTED"))
            finally:
                os._exit(2)
    assert os.waitpid(child, 0)[1] == 0
