"""Pausing coverage works in a program that measures itself."""

import signal
import subprocess
import sys
from pathlib import Path

import coverage

from tests.support import coverage_pause, programs

PROBE = """
def before():
    return "measured"

def within():
    return "not measured"

def after():
    return "measured"
"""
MEASURED = """
import os
import coverage

measured = coverage.Coverage(data_file=None, config_file=False, include=["*/probe.py"])
measured.start()
import probe
from tests.support import coverage_pause

def programs_are():
    return os.environ.get("COVERAGE_PROCESS_CONFIG")

os.environ["COVERAGE_PROCESS_CONFIG"] = "told"
probe.before()
with coverage_pause.paused():
    probe.within()
    print(programs_are())
probe.after()
print(programs_are())
measured.stop()
print(measured.analysis2(probe)[3])
"""

KILLED = """
import os
import signal
import coverage

measured = coverage.Coverage(data_file="found", config_file=False, include=["*/probe.py"])
measured.start()
import probe
from tests.support import coverage_pause

probe.before()
coverage_pause.save()
os.kill(os.getpid(), signal.SIGKILL)
"""
HYPOTHESIS_TEST = """
import probe
from hypothesis import given
from hypothesis import strategies as st

def test_first(ran):
    probe.before()

@given(number=st.integers())
def test_examples(number, ran):
    ran.append(number)
    if len(ran) > {measured}:
        probe.within()

def test_last(ran):
    assert len(ran) > {measured}
    probe.after()
"""
CONFTEST = """
import pytest
from tests.support import coverage_pause

@pytest.fixture(scope="session")
def ran():
    return []

@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    with coverage_pause.paused_after_first_examples(item.obj):
        return (yield)
"""
ITS_MEASUREMENT = """
import coverage
import pytest

measured = coverage.Coverage(data_file=None, config_file=False, include=["*/probe.py"])
measured.start()
status = pytest.main(["-q", "-p", "no:cacheprovider", "-p", "no:schemathesis"])
measured.stop()
import probe
print(status, measured.analysis2(probe)[3])
"""


def test_lines_that_run_in_a_pause_are_not_measured_and_later_lines_are(tmp_path: Path) -> None:
    (tmp_path / "probe.py").write_text(PROBE)
    path = f"{tmp_path}:{programs.ROOT}"
    ended = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", MEASURED],
        env=programs.environment(PYTHONPATH=path),
        check=True,
        capture_output=True,
        text=True,
    )
    not_measured = PROBE.splitlines().index('    return "not measured"') + 1
    assert ended.stdout.splitlines() == ["None", "told", str([not_measured])]


def test_what_was_saved_outlives_a_kill(tmp_path: Path) -> None:
    (tmp_path / "probe.py").write_text(PROBE)
    path = f"{tmp_path}:{programs.ROOT}"
    ended = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", KILLED],
        cwd=tmp_path,
        env=programs.environment(PYTHONPATH=path),
        check=False,
    )
    assert ended.returncode == -signal.SIGKILL
    found = coverage.CoverageData(str(tmp_path / "found"))
    found.read()
    lines = found.lines(str(tmp_path / "probe.py")) or []
    assert PROBE.splitlines().index('    return "measured"') + 1 in lines


def test_only_the_first_value_of_a_parametrized_test_are_measured() -> None:
    given = [f"a.py::test_one[{value}]" for value in "abcde"]
    others = ["a.py::test_two", "a.py::test_two", "b.py::test_one[a]"]
    assert coverage_pause.repeated([*given, *others]) == {*given[1:]}
    assert coverage_pause.repeated(["a.py::test_two"] * 9) == set()


def test_only_the_first_examples_of_a_hypothesis_test_are_measured(tmp_path: Path) -> None:
    (tmp_path / "probe.py").write_text(PROBE)
    (tmp_path / "conftest.py").write_text(CONFTEST)
    text = HYPOTHESIS_TEST.replace("{measured}", str(coverage_pause.EXAMPLES))
    (tmp_path / "test_probe.py").write_text(text)
    ended = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", ITS_MEASUREMENT],
        cwd=tmp_path,
        env=programs.environment(PYTHONPATH=f"{tmp_path}:{programs.ROOT}"),
        check=True,
        capture_output=True,
        text=True,
    )
    not_measured = PROBE.splitlines().index('    return "not measured"') + 1
    assert ended.stdout.splitlines()[-1] == f"0 [{not_measured}]", ended.stdout
