"""Long-running operations: their states, the ways in which they end, and their maximum number."""

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from datastore_emulator import errors
from datastore_emulator.admin_api import admin_protobufs, operations
from emulator.tests.support.admin_calls import metadata

STATES = {"PROCESSING": 2, "CANCELLING": 3, "SUCCESSFUL": 5, "FAILED": 6, "CANCELLED": 7}


@pytest.fixture
def running() -> Iterator[operations.Operations]:
    made = operations.Operations(lambda: 1_000_000.0)
    yield made
    made.close()


def start(
    running: operations.Operations,
    work: Callable[..., Any],
    project: str = "test",
    kind: str = "EXPORT_ENTITIES",
) -> Any:
    made = admin_protobufs.ExportEntitiesMetadata()
    made.common.operation_type = admin_protobufs.operation_type(kind)
    return running.start(project, made, work)


def answer(_job: operations.Job) -> Any:
    return admin_protobufs.ExportEntitiesResponse(output_url="there")


def state_of(operation: Any) -> str:
    return {number: name for name, number in STATES.items()}[metadata(operation).common.state]


class Held:
    """Work that continues until it is released or canceled."""

    def __init__(self) -> None:
        self.has_begun = threading.Event()
        self.may_end = threading.Event()

    def __call__(self, job: operations.Job) -> Any:
        self.has_begun.set()
        assert self.may_end.wait(60)
        job.advance(entities=1)
        return admin_protobufs.ExportEntitiesResponse()


def test_an_operation_ends_with_its_response(running: operations.Operations) -> None:
    begun = start(running, answer)
    assert (begun.done, state_of(begun)) == (False, "PROCESSING")
    ended = running.wait(begun.name, None)
    response = admin_protobufs.ExportEntitiesResponse()
    assert ended.done
    assert ended.response.Unpack(response)
    assert (response.output_url, state_of(ended)) == ("there", "SUCCESSFUL")
    common = metadata(ended).common
    assert common.start_time.seconds == common.end_time.seconds == 1_000_000
    assert running.get(begun.name) == ended


@pytest.mark.parametrize(
    ("fault", "code"),
    [
        (errors.ResourceExhausted("full"), "RESOURCE_EXHAUSTED"),
        (KeyError("x"), "FAILED_PRECONDITION"),
    ],
)
def test_a_fault_is_the_operation_s_error(
    running: operations.Operations, fault: KeyError | errors.ResourceExhausted, code: str
) -> None:
    def fail(_job: operations.Job) -> None:
        raise fault

    ended = running.wait(start(running, fail).name, None)
    assert ended.error.code == admin_protobufs.code(code)
    assert str(getattr(fault, "message", repr(fault))) in ended.error.message
    assert state_of(ended) == "FAILED"


def test_an_operation_is_canceled_at_its_next_step(running: operations.Operations) -> None:
    held = Held()
    name = start(running, held).name
    assert held.has_begun.wait(60)
    assert state_of(running.get(name)) == "PROCESSING"
    running.cancel(name)
    assert state_of(running.get(name)) == "CANCELLING"
    with pytest.raises(errors.FailedPrecondition, match="is running"):
        running.delete(name)
    assert not running.wait(name, 0).done
    held.may_end.set()
    ended = running.wait(name, None)
    assert ended.error.code == admin_protobufs.code("CANCELLED")
    assert state_of(ended) == "CANCELLED"


def test_an_ended_operation_is_not_canceled_and_can_be_deleted(
    running: operations.Operations,
) -> None:
    name = start(running, answer).name
    running.wait(name, None)
    running.cancel(name)
    assert state_of(running.get(name)) == "SUCCESSFUL"
    running.delete(name)
    for method in (running.get, running.cancel, running.delete):
        with pytest.raises(errors.NotFound):
            method(name)


@pytest.mark.parametrize("name", ["", "x", "projects/test", "projects/a/b/operations/c"])
def test_an_invalid_operation_name_is_refused(running: operations.Operations, name: str) -> None:
    with pytest.raises(
        errors.InvalidArgument, match="must have the form projects/PROJECT/operations/ID"
    ):
        running.get(name)


def test_too_many_operations_at_once_are_refused(running: operations.Operations) -> None:
    held = [Held() for _ in range(operations.MAX_RUNNING)]
    for each in held:
        start(running, each)
    with pytest.raises(errors.ResourceExhausted, match="are running"):
        start(running, answer)
    held[0].may_end.set()
    running.wait(next(running.all_of("test"))[0].name, None)
    assert running.wait(start(running, answer).name, None).done
    for each in held:
        each.may_end.set()


def test_the_oldest_ended_operations_are_forgotten(
    running: operations.Operations, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(operations, "MAX_KEPT", 2)
    names = []
    for _ in range(4):
        names.append(start(running, answer).name)
        running.wait(names[-1], None)
    with pytest.raises(errors.NotFound):
        running.get(names[0])
    assert running.get(names[3]).done


def test_operations_belong_to_their_project(running: operations.Operations) -> None:
    for project in ("test", "other", "example.com:test"):
        running.wait(start(running, answer, project).name, None)
    assert len(list(running.all_of("test"))) == len(list(running.all_of("example.com:test"))) == 1


def test_closing_ends_running_operations_and_refuses_new_ones(
    running: operations.Operations,
) -> None:
    held = Held()
    name = start(running, held).name
    assert held.has_begun.wait(60)
    held.may_end.set()
    running.close()
    assert running.get(name).done
    with pytest.raises(errors.Unavailable):
        start(running, answer)
