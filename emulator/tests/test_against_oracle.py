"""The engine gives the same results as the oracle, in process and over gRPC, for any call history.

`python -m emulator.tests.oracle.deep --minutes 30` runs the same comparison for a longer time.
"""

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from emulator.tests.oracle import deep, grpc_state_machine, state_machine

CI = settings(settings.get_profile("ci"), suppress_health_check=list(HealthCheck))


@pytest.mark.slow
def test_any_history_gives_the_results_of_the_oracle() -> None:
    run_state_machine_as_test(
        state_machine.Machine, settings=settings(CI, max_examples=40, stateful_step_count=30)
    )


@pytest.mark.slow
def test_any_history_through_a_socket_gives_the_results_of_the_oracle() -> None:
    run_state_machine_as_test(
        grpc_state_machine.Remote, settings=settings(CI, max_examples=5, stateful_step_count=20)
    )


def test_a_deep_run_prints_its_seeds_and_steps(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(
        "sys.argv", ["deep", "--minutes", "0.0001", "--seed", "7", "--examples", "1"]
    )
    deep.main()
    told = capsys.readouterr().out.splitlines()
    assert told[0].endswith("first seed 7")
    assert told[1].startswith("seed 7, ")
    assert " steps" in told[1]
    assert told[-1] == "no difference with seeds 7 to 7"
