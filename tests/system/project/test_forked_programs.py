"""Forked programs run like started ones: arguments, pipes, exit statuses and signals."""

import os
import signal

import pytest

from tests.support import forked_programs, programs

pytestmark = pytest.mark.slow

ECHO = """
import sys
print(*sys.argv[1:], sys.stdin.read(), __name__)
"""
STOPPED = """
import os, signal
os.kill(os.getpid(), signal.SIGSTOP)
print("woken")
"""


def say(*words: object) -> None:
    print(*words)  # noqa: T201 - the test reads it


def die(number: int) -> None:
    print("before", flush=True)  # noqa: T201 - the test reads it
    os.kill(os.getpid(), number)


def fail() -> None:
    raise ValueError("a fault of the test")


def test_a_text_gets_its_arguments_and_its_input() -> None:
    with forked_programs.start(ECHO, "a", 1) as program:
        program.stdin.write("typed")
        assert program.output() == "a 1 typed __main__\n"
    assert program.returncode == 0


def test_a_function_gets_its_arguments_as_they_are() -> None:
    assert forked_programs.run(say, {"a": 1}, None) == (0, "{'a': 1} None\n")


def test_a_signal_that_kills_is_the_status() -> None:
    assert forked_programs.run(die, signal.SIGKILL) == (-signal.SIGKILL, "before\n")


def test_an_error_is_on_stderr_and_in_the_status(capfd: pytest.CaptureFixture[str]) -> None:
    assert forked_programs.run(fail) == (1, "")
    assert "ValueError: a fault of the test" in capfd.readouterr().err


def test_a_stopped_program_can_be_woken() -> None:
    with forked_programs.start(STOPPED) as program:
        programs.wait_until(lambda: forked_programs.is_stopped(program.pid))
        program.send_signal(signal.SIGCONT)
        assert program.output() == "woken\n"


def test_a_program_that_does_not_end_is_an_error_of_the_test() -> None:
    with pytest.raises(TimeoutError), forked_programs.start(signal.pause) as program:
        program.output(0.1)
    assert program.returncode == -signal.SIGKILL
