"""scripts/test calls its tools in order. Stand-ins for the tools record the calls."""

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support import programs

TOOL = """#!/bin/sh
echo "${STARTS:+STARTS=$STARTS }$(basename "$0") $*" >>"$LOG"
[ "$(basename "$0")" = "${FAILS:-}" ] && { echo "$FAILS failed"; exit 1; }
case "$(basename "$0") $*" in
  "python -m pytest"*) echo "${SUMMARY:-== 3 passed in 0.1s ==}" ;;
esac
exit 0
"""
# Runs without the workers, whose start would take most of the time.
RUN_PYTEST = f"""#!/bin/sh
export PYTEST_DISABLE_PLUGIN_AUTOLOAD=1
case "$*" in
  *--collect-only*) ;;
  *--last-failed*) exec {sys.executable} "$@" ;;
  *) exec {sys.executable} -m pytest ;;
esac
"""
UNSTABLE = """
from pathlib import Path
import pytest

@pytest.mark.parametrize("number", range({unstable}))
def test_unstable(number):
    seen = Path(f"seen-{{number}}")
    if not seen.exists():
        seen.touch()
        pytest.fail("the first failure")

@pytest.mark.parametrize("number", range({broken}))
def test_broken(number):
    raise AssertionError
"""
TOOLS = ("python", "ruff", "mypy", "lint-imports", "coverage", "node", "npm", "chromium")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "scripts").mkdir()
    for name in ("check", "packages", "test"):
        shutil.copy(programs.ROOT / "scripts" / name, tmp_path / "scripts")
    for name in ("venv", "names.py", "sizes.py"):
        programs.write(tmp_path / "scripts" / name, "#!/bin/sh\n")
    programs.write(tmp_path / "scripts" / "build-widget", TOOL)
    widget = tmp_path / "widget"
    for tool in ("prettier", "tsc"):
        programs.write(widget / "node_modules" / ".bin" / tool, TOOL)
    for name in ("package-lock.json", "node_modules/installed-lock.json"):
        (widget / name).write_text("{}")
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "plain.py").write_text("import pytest\n")
    (tmp_path / "tests" / "html.py").write_text("from tests.support.html import html_validator\n")
    (tmp_path / "tests" / "tab.py").write_text(
        "import playwright\nfrom emulator.tests.clients import driver\n"
    )
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    for tool in TOOLS:
        programs.write(tmp_path / ".venv" / "bin" / tool, TOOL)
    # Provide only the commands that the script itself uses.
    for name in ("bash", "sh", "dirname", "basename", "git", "grep", "mktemp", "tail", "tee"):
        found = shutil.which(name)
        assert found is not None
        (tmp_path / "bin").mkdir(exist_ok=True)
        (tmp_path / "bin" / name).symlink_to(found)
    for name in ("rm", "id", "cmp", "cp", "head", "sed"):
        (tmp_path / "bin" / name).symlink_to(str(shutil.which(name)))
    return tmp_path


def gate(
    folder: Path, *arguments: Any, **settings: Any
) -> tuple[subprocess.CompletedProcess[str], Any]:
    log = folder / "log"
    log.write_text("")
    settings = {"PATH": str(folder / "bin"), "LOG": str(log), **settings}
    ended = programs.run([folder / "scripts" / "test", *arguments], cwd="/", **settings)
    return ended, log.read_text().splitlines()


def test_it_ends_with_pytests_summary(folder: Path) -> None:
    ended, did = gate(folder)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.splitlines()[-1] == "== 3 passed in 0.1s =="
    tools = [line.split()[0] for line in did]
    order = ("ruff", "lint-imports", "mypy", "prettier", "build-widget")
    assert sorted(order, key=tools.index) == list(order)
    assert "python -m pytest --collect-only -qq" in did
    assert did[-5:-3] == ["python -m pytest -n 4 --dist worksteal", "coverage erase"]
    assert did[-1] == "coverage report"


@pytest.mark.parametrize(
    "tool", ["ruff", "mypy", "lint-imports", "prettier", "build-widget", "python", "coverage"]
)
def test_it_fails_with_the_output_of_the_failing_tool(folder: Path, tool: str) -> None:
    ended, _ = gate(folder, FAILS=tool)
    assert ended.returncode != 0
    assert f"{tool} failed" in ended.stdout


@pytest.mark.parametrize(("unstable", "broken", "code"), [(3, 0, 0), (4, 0, 1), (1, 1, 1)])
def test_failed_tests_run_again_and_three_may_be_unstable(
    folder: Path, unstable: int, broken: int, code: int
) -> None:
    programs.write(folder / ".venv" / "bin" / "python", RUN_PYTEST)
    (folder / "tests" / "test_it.py").write_text(UNSTABLE.format(unstable=unstable, broken=broken))
    ended, _ = gate(folder)
    assert ended.returncode == code, ended.stdout + ended.stderr
    listed = ended.stdout.partition("== Unstable")[2].splitlines()
    failures = [line for line in listed if line == "E           Failed: the first failure"]
    assert len(failures) == (unstable if code == 0 else 0), ended.stdout


def test_with_arguments_it_passes_them_to_pytest(folder: Path) -> None:
    ended, did = gate(folder, "tests/plain.py::test_one", "-k", "two words")
    assert ended.returncode == 0
    assert did == ["python -m pytest tests/plain.py::test_one -k two words"]


@pytest.mark.parametrize(
    ("path", "installed"),
    [
        ("tests/plain.py", set()),
        ("tests/html.py", {"tests/validator"}),
        ("tests/tab.py", {"tests/axe", "emulator/tests/clients/node"}),
        ("tests", {"tests/axe", "emulator/tests/clients/node", "tests/validator"}),
    ],
)
def test_chosen_tests_install_only_the_packages_they_use(
    folder: Path, path: str, installed: Any
) -> None:
    for each in ("tests/axe", "emulator/tests/clients/node", "tests/validator"):
        (folder / each / "node_modules").mkdir(parents=True)
        (folder / each / "package-lock.json").write_text("{}")
    ended, _ = gate(folder, path)
    assert ended.returncode == 0, ended.stderr
    stamps = folder.rglob("installed-lock.json")
    there = {str(each.parents[1].relative_to(folder)) for each in stamps}
    assert there - {"widget"} == installed


def test_quick_runs_the_checks_but_no_slow_or_browser_tests(folder: Path) -> None:
    (folder / ".venv" / "bin" / "chromium").unlink()
    ended, did = gate(folder, "--quick", "--durations=5")
    assert ended.returncode == 0, ended.stderr
    assert "mypy " in did
    assert "--few-values -m not slow and not browser" in did[-1]
    assert "--ignore=tests/system/programs" in did[-1]
    assert did[-1].endswith("--durations=5")
    assert not [line for line in did if line.startswith(("coverage", "npm"))]


def test_coverage_measures_the_quick_tests_and_fails_if_it_is_low(folder: Path) -> None:
    ended, did = gate(folder, "--coverage")
    assert ended.returncode == 0, ended.stderr
    assert did[0] == "coverage erase"
    assert did[1].startswith(
        "coverage run -m pytest -c pyproject.toml --few-values -m not slow and not browser"
    )
    assert did[2:] == ["coverage combine --quiet", "coverage report"]
    assert gate(folder, "--coverage", FAILS="coverage")[0].returncode == 1


def test_long_runs_everything_longer(folder: Path) -> None:
    ended, did = gate(folder, "--long")
    assert ended.returncode == 0, ended.stderr
    assert did == ["STARTS=10 python -m pytest -n 4 --dist worksteal"]


def test_store_runs_the_chosen_tests_against_the_emulator(folder: Path) -> None:
    ended, did = gate(folder, "--store", "tests/plain.py", DATASTORE_EMULATOR_HOST="localhost:8081")
    assert ended.returncode == 0, ended.stderr
    assert did == [
        "python -m pytest -c pyproject.toml --store -n 4 --dist worksteal tests/plain.py"
    ]


def test_store_without_an_emulator_runs_nothing(folder: Path) -> None:
    ended, did = gate(folder, "--store")
    assert ended.returncode == 2
    assert "Set DATASTORE_EMULATOR_HOST" in ended.stderr
    assert did == []


@pytest.mark.parametrize("tool", ["node", "npm", "chromium"])
def test_a_missing_program_is_reported_at_the_end_and_fails_in_ci(folder: Path, tool: str) -> None:
    (folder / ".venv" / "bin" / tool).unlink()
    ended, _ = gate(folder)
    assert ended.returncode == 0
    *_, said, summary = ended.stdout.splitlines()
    assert said.startswith("SKIPPED: no ")
    assert "passed" in summary
    in_ci, _ = gate(folder, CI="true")
    assert in_ci.returncode == 1


@pytest.mark.parametrize(
    ("path", "has_shell", "asked"),
    [
        ("tests/tab.py", False, ["update", "install"]),
        ("tests/tab.py", True, []),
        ("tests/plain.py", False, []),
    ],
)
def test_on_debian_root_installs_the_headless_shell_for_browser_tests(
    folder: Path, path: str, has_shell: bool, asked: list[str]
) -> None:
    (folder / "bin" / "id").unlink()
    programs.write(folder / "bin" / "id", "#!/bin/sh\necho 0\n")
    programs.write(folder / "bin" / "apt-get", TOOL)
    if has_shell:
        programs.write(folder / "bin" / "chromium-headless-shell", TOOL)
    ended, did = gate(folder, path)
    assert ended.returncode == 0, ended.stderr
    calls = [line.split() for line in did if line.startswith("apt-get")]
    assert [call[1] for call in calls] == asked
    assert all(call[-1] == "chromium-headless-shell" for call in calls[1:])
    # Without the shell, the tests run in the whole browser.
    ended, did = gate(folder, path, FAILS="apt-get")
    assert ended.returncode == 0, ended.stderr
    assert did[-1] == f"python -m pytest {path}"


def test_in_ci_root_installs_the_proxies_for_their_tests(folder: Path) -> None:
    (folder / "bin" / "id").unlink()
    programs.write(folder / "bin" / "id", "#!/bin/sh\necho 0\n")
    programs.write(folder / "bin" / "apt-get", TOOL)
    (folder / "tests" / "proxied.py").write_text("from tests.support import programs, proxies\n")
    ended, did = gate(folder, "tests/proxied.py", CI="true")
    assert ended.returncode == 0, ended.stderr
    (installed,) = [line.split() for line in did if line.startswith("apt-get install")]
    assert {"caddy", "systemd"} <= set(installed)
    assert not [line for line in gate(folder, "tests/plain.py", CI="true")[1] if "apt-get" in line]


@pytest.mark.parametrize(
    "packages", ["emulator/tests/clients/node", "tests/validator", "tests/axe"]
)
def test_npm_packages_of_tests_are_installed_once(folder: Path, packages: str) -> None:
    client = folder / packages
    (client / "node_modules").mkdir(parents=True)
    (client / "package-lock.json").write_text("{}")
    assert "npm ci" in " ".join(gate(folder)[1])
    assert "npm ci" not in " ".join(gate(folder)[1])
    (client / "package-lock.json").write_text('{"changed": 1}')
    ended, did = gate(folder, FAILS="npm")
    assert "npm ci" in " ".join(did)
    assert "SKIPPED: npm ci failed" in ended.stdout
    assert gate(folder, FAILS="npm", CI="true")[0].returncode == 1


def test_a_skipped_test_fails_in_ci_unless_it_needs_what_ci_may_lack(folder: Path) -> None:
    of_tools = "SKIPPED [1] tests/t.py:1: no such tool\n== 3 passed, 1 skipped in 0.1s =="
    of_data = of_tools.replace("no such tool", "needs a.xml of the shared data")
    assert gate(folder, SUMMARY=of_tools)[0].returncode == 0
    assert gate(folder, SUMMARY=of_tools, CI="true")[0].returncode == 1
    of_google = of_tools.replace("no such tool", "needs Java of the Google Cloud CLI")
    assert gate(folder, SUMMARY=of_data, CI="true")[0].returncode == 0
    assert gate(folder, SUMMARY=of_google, CI="true")[0].returncode == 0
    of_container = of_tools.replace(
        "no such tool", "needs podman and x, the base image of the container"
    )
    assert gate(folder, SUMMARY=of_container, CI="true")[0].returncode == 0
