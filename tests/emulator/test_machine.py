"""The engine against the oracle, through both doors, over any history."""

import contextlib

import grpc
import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from emulator import testing
from tests.oracle import machine

CI = settings(settings.get_profile("ci"), suppress_health_check=list(HealthCheck))


@pytest.mark.slow
def test_any_history_gives_what_the_oracle_gives():
    run_state_machine_as_test(
        machine.Machine, settings=settings(CI, max_examples=80, stateful_step_count=30)
    )


@pytest.mark.slow
def test_any_history_through_a_socket_gives_what_the_oracle_gives():
    class Remote(machine.Machine):
        @staticmethod
        @contextlib.contextmanager
        def open_door(engine):
            with testing.running_server(engine) as address, grpc.insecure_channel(address) as door:
                yield door

    run_state_machine_as_test(
        Remote, settings=settings(CI, max_examples=10, stateful_step_count=20)
    )
