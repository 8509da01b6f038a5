"""Run the state machine for a chosen time, with a new seed for each round (the deep run).

    python -m emulator.tests.oracle.deep --minutes 30 --seed 1

A failing round prints the shrunk history and ends the run; to repeat the round, use the same seed.
Every tenth round uses a socket.
"""

from __future__ import annotations

import argparse
import subprocess
import time
from collections.abc import Callable

import hypothesis
from hypothesis import HealthCheck, settings, stateful

from emulator.tests.oracle import grpc_state_machine, state_machine
from tests.support import hypothesis_profiles

EXAMPLES = 400
REMOTE_EXAMPLES = 40
STEPS = 50
REMOTE_EVERY = 10


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--examples", type=int, default=EXAMPLES, help="in each round")
    options = parser.parse_args()
    hypothesis_profiles.load()
    commit = subprocess.run(
        ["git", "describe", "--always", "--dirty"], capture_output=True, text=True, check=False
    )
    say(f"commit {commit.stdout.strip()}, first seed {options.seed}")
    began = time.monotonic()
    seed = options.seed
    minutes = 0.0
    while seed == options.seed or minutes < options.minutes:
        is_remote = seed % REMOTE_EVERY == 0
        run(
            grpc_state_machine.Remote if is_remote else state_machine.Machine,
            seed,
            options.examples,
        )
        told = ", ".join(f"{number} {what}" for what, number in state_machine.Machine.tally.items())
        minutes = (time.monotonic() - began) / 60
        say(f"seed {seed}, {minutes:.1f} minutes: {told}")
        seed += 1
    say(f"no difference with seeds {options.seed} to {seed - 1}")


def run(made: Callable[[], state_machine.Machine], seed: int, examples: int) -> None:
    """Run one round with the profile `deep`."""
    deep = settings(
        settings.get_profile("deep"),
        max_examples=REMOTE_EXAMPLES if made is grpc_state_machine.Remote else examples,
        stateful_step_count=STEPS,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    factory = type("Round", (made,), {})  # type: ignore[arg-type]
    stateful.run_state_machine_as_test(hypothesis.seed(seed)(factory), settings=deep)


def say(text: str) -> None:
    print(text, flush=True)  # noqa: T201 - programs print


if __name__ == "__main__":
    main()
