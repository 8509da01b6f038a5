"""The programs in scripts/ and main.py work as documented and report faults in one line."""

import gc
import json
import os
import pty
import re
import shutil
import signal
import stat
import subprocess
import sys
import urllib.parse
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
from packaging import requirements, utils

from tests.support import programs


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A copy of the project with the packages already installed."""
    folder = programs.copy_project(tmp_path / "project")
    programs.borrow_environment(folder)
    return folder


def program(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


class TestServe:
    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
    def test_it_prints_only_its_url_once_it_answers_and_stops_on_a_signal(
        self, project: Path, tmp_path: Path, number: Any
    ) -> None:
        elsewhere = tmp_path / "elsewhere"
        elsewhere.mkdir()
        with (
            (tmp_path / "errors").open("w+") as stderr,
            subprocess.Popen(
                [project / "scripts" / "serve"],
                cwd=elsewhere,
                env=programs.environment(PORT="0", DATA_DIR="kept here"),
                stdout=subprocess.PIPE,
                stderr=stderr,
                text=True,
            ) as process,
        ):
            try:
                said = process.stdout.readline()
                url = re.fullmatch(r"Flatthread answers at (http://127\.0\.0\.1:\d+/)\n", said)[1]
                assert programs.fetch(f"{url}healthz")[0] == 200
            finally:
                process.send_signal(number)
            rest, _ = process.communicate(timeout=programs.PATIENCE)
            stderr.seek(0)
            log = stderr.read()
        assert rest == ""
        assert process.returncode == 0
        # A relative DATA_DIR is relative to the caller's folder. The log names the store once.
        assert (elsewhere / "kept here").is_dir()
        assert not (project / "data").exists()
        line, rest = log.split("\n", 1)
        stores = f"Flatthread stores comments in the embedded engine in {elsewhere}/kept here."
        assert json.loads(line)["message"] == stores
        kept = elsewhere / "kept here" / "first-owner"
        owning = f"There is no owner yet. The link to become the owner is in {kept}\n"
        assert rest in {"", owning}, "a link is in the log"
        if rest:
            assert kept.stat().st_mode & 0o777 == 0o600

    def test_posted_comments_survive_a_restart(self, project: Path) -> None:
        comment = b'{"name": "Ada", "body": "still here"}'
        thread = "api/v1/sites/demo/comments?thread=t"
        for attempt in (1, 2):
            with programs.running(
                [project / "scripts" / "serve"],
                environ=programs.environment(PORT="0", PROOF_OF_WORK="0"),
            ) as serving:
                url = serving.wait_for(r"answers at (http://\S+/)")[1]
                if attempt == 1:
                    posted, _ = programs.fetch(
                        url + thread,
                        method="POST",
                        body=comment,
                        content_type="application/json",
                        idempotency_key="restart-test-0001",
                    )
                    assert posted == 201
                else:
                    assert b"still here" in programs.fetch(url + thread)[1]

    def test_on_a_fresh_folder_the_stored_link_creates_the_owner_once(self, project: Path) -> None:
        form = {"name": "Ann", "login": "ann", "password": "a password of hers"}

        def accept(url: str, token: str) -> Any:
            return programs.fetch(
                f"{url}admin/welcome",
                method="POST",
                body=urllib.parse.urlencode(form | {"token": token}).encode(),
                content_type="application/x-www-form-urlencoded",
                sec_fetch_site="same-origin",
            )[0]

        serve = [project / "scripts" / "serve"]
        environ = programs.environment(PORT="0", DATA_DIR="kept")
        with programs.running(serve, environ=environ, cwd=project) as program:
            url = program.wait_for(r"answers at (http://\S+/)")[1]
            kept = Path(program.wait_for(r"The link to become the owner is in (\S+)")[1])
            link = kept.read_text(encoding="ascii").strip()
            assert link.startswith(f"{url}admin/welcome#")
            token = link.partition("#")[2]
            assert accept(url, "x" * 43) == 400
            assert kept.exists()
            assert accept(url, token) == 200  # redirects to a page that needs the new cookie
            assert not kept.exists()
            assert accept(url, token) == 400
            assert program.stop() == 0
            assert not any(token in line for line in program.lines)
        with programs.running(serve, environ=environ, cwd=project) as program:
            url = program.wait_for(r"answers at (http://\S+/)")[1]
            assert programs.fetch(f"{url}admin/sign-in")[0] == 200
            assert program.stop() == 0
            assert not any("owner yet" in line for line in program.lines)
            assert not kept.exists()

    def test_a_short_secret_causes_one_warning(self, project: Path) -> None:
        (project / "short").mkdir()
        environ = programs.environment(PORT="0", DATA_DIR="short", SECRET="a short one")
        with programs.running(
            [project / "scripts" / "serve"], environ=environ, cwd=project
        ) as program:
            program.wait_for(r"answers at (http://\S+/)")
            assert program.stop() == 0
        (said,) = [line for line in program.lines if "SECRET has" in line]
        assert json.loads(said)["severity"] == "WARNING"
        assert "11 characters" in said
        assert "a short one" not in "".join(program.lines)

    def test_at_a_terminal_the_first_owners_link_is_shown(self, project: Path) -> None:
        screen, terminal = pty.openpty()
        environ = programs.environment(PORT="0", DATA_DIR="shown")
        with subprocess.Popen(
            [project / "scripts" / "serve"],
            cwd=project,
            env=environ,
            stdout=subprocess.DEVNULL,
            stderr=terminal,
        ) as process:
            os.close(terminal)
            try:
                shown = ""
                while not (found := re.search(r"open this link once: (\S+#[\w-]{43})", shown)):
                    shown += os.read(screen, 4096).decode()
            finally:
                process.terminate()
                os.close(screen)
        kept = project / "shown" / "first-owner"
        assert kept.read_text(encoding="ascii").strip() == found[1]

    def test_invalid_settings_end_it_with_one_line_and_status_3(self, project: Path) -> None:
        ended = programs.run(
            [project / "scripts" / "serve"], cwd=project, MAX_BODY="none", PORT="0"
        )
        assert ended.returncode == 3
        assert ended.stdout == ""
        assert ended.stderr == (
            "flatthread: MAX_BODY must be a whole number from 1024 to 1048576, not 'none'\n"
        )

    def test_an_unreadable_data_file_ends_it_with_one_line_and_status_3(
        self, project: Path
    ) -> None:
        (project / "data").mkdir()
        (project / "data" / "flatthread.db").write_bytes(b"no data file at all" * 1_000)
        ended = programs.run([project / "scripts" / "serve"], cwd=project, PORT="0")
        assert ended.returncode == 3
        assert ended.stdout == ""
        assert ended.stderr.splitlines()[-1].startswith(
            "flatthread: cannot open the data: data/flatthread.db: "
        )
        assert "Traceback" not in ended.stderr

    def test_sites_with_another_scheme_end_it_with_one_line_and_status_3(
        self, project: Path
    ) -> None:
        flask: list[str | Path] = [
            programs.BIN / "flask",
            "--app",
            "main",
            "site",
            "add",
            "blog",
            "--origin",
            "https://x.y",
        ]
        assert programs.run(flask, cwd=project).returncode == 0
        ended = programs.run(
            [project / "scripts" / "serve"], cwd=project, PORT="0", SORT_HASH_LEVELS="3"
        )
        assert ended.returncode == 3
        assert ended.stderr.splitlines()[-1].startswith(
            "flatthread: SORT_HASH_LEVELS is 3, but site blog has 8 levels."
        )
        assert "Traceback" not in ended.stderr

    def test_on_an_emulator_every_worker_has_its_own_connection(self, project: Path) -> None:
        emulator: list[str | Path] = [
            programs.BIN / "python",
            "-m",
            "emulator",
            "--port",
            "0",
            "--in-memory",
        ]
        with programs.running(
            [*emulator, "--indexes", "index.yaml"],
            environ=programs.environment(),
        ) as store:
            host = store.wait_for(r"DATASTORE_EMULATOR_HOST=(\S+)")[1]
            environ = programs.environment(
                PORT="0", DATASTORE_EMULATOR_HOST=host, SECRET="0123456789abcdef"
            )
            with programs.running([project / "scripts" / "serve"], environ=environ) as serving:
                url = serving.wait_for(r"answers at (http://\S+/)")[1]
                assert [programs.fetch(f"{url}healthz")[0] for _ in range(20)] == [200] * 20
                assert serving.stop() == 0
            assert sum(f"the emulator at {host}" in line for line in serving.lines) == 1


class TestVenv:
    """Stand-ins for Python record what scripts/venv would create and install."""

    PYTHON = """#!/bin/sh
echo "$(basename "$0") $*" >>"$LOG"
case "$*" in
  *version_info*) exit "${TOO_OLD:-0}" ;;
  "-m venv --clear "*) rm -rf .venv/* && mkdir -p .venv/bin && cp "$0" .venv/bin/python ;;
  *"pip install"*) exit "${PIP_FAILS:-0}" ;;
esac
"""

    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        (tmp_path / "scripts").mkdir()
        shutil.copy(programs.ROOT / "scripts" / "venv", tmp_path / "scripts")
        (tmp_path / "requirements.txt").write_text("flask==1\n")
        program(tmp_path / "bin" / "python3", self.PYTHON)
        return tmp_path

    def venv(self, folder: Path, **settings: Any) -> tuple[subprocess.CompletedProcess[str], Any]:
        log = folder / "log"
        log.write_text("")
        path = f"{folder / 'bin'}:{os.environ['PATH']}"
        ended = programs.run(
            [folder / "scripts" / "venv", "requirements.txt"],
            cwd="/",
            **{"PATH": path, "LOG": str(log), **settings},
        )
        return ended, log.read_text()

    def test_it_creates_and_fills_an_environment_once(self, folder: Path) -> None:
        first, did = self.venv(folder)
        assert first.returncode == 0, first.stderr
        assert "-m venv --clear .venv" in did
        assert "--require-hashes -r requirements.txt" in did
        again, did = self.venv(folder)
        assert (again.returncode, again.stdout, again.stderr) == (0, "", "")
        assert "install" not in did

    def test_it_reinstalls_when_a_pin_changed(self, folder: Path) -> None:
        self.venv(folder)
        (folder / "requirements.txt").write_text("flask==2\n")
        _, did = self.venv(folder)
        assert "--require-hashes" in did
        assert "-m venv" not in did

    def test_a_failed_installation_is_repeated(self, folder: Path) -> None:
        failed, _ = self.venv(folder, PIP_FAILS="1")
        assert failed.returncode != 0
        _, did = self.venv(folder)
        assert "--require-hashes" in did

    def test_an_environment_without_its_python_is_recreated(self, folder: Path) -> None:
        self.venv(folder)
        (folder / ".venv" / "bin" / "python").unlink()
        _, did = self.venv(folder)
        assert "-m venv --clear .venv" in did

    @pytest.mark.parametrize("has_python", [True, False])
    def test_the_target_of_a_link_is_neither_cleared_nor_installed_into(
        self, folder: Path, has_python: bool
    ) -> None:
        theirs = folder / "theirs"
        program(theirs / "notes", "of another project")
        if has_python:
            program(theirs / "bin" / "python", self.PYTHON)
        before = sorted(theirs.rglob("*"))
        (folder / ".venv").symlink_to(theirs)
        made, did = self.venv(folder)
        assert made.returncode == 0, made.stderr
        assert f".venv is a link to {theirs}. A new environment replaces the link" in made.stderr
        assert sorted(theirs.rglob("*")) == before
        assert not (folder / ".venv").is_symlink()
        assert "-m venv --clear .venv" in did
        assert self.venv(folder)[1].count("install") == 0

    def test_a_link_to_a_complete_environment_is_used(self, folder: Path) -> None:
        self.venv(folder)
        (folder / ".venv").rename(folder / "theirs")
        (folder / ".venv").symlink_to(folder / "theirs")
        used, did = self.venv(folder)
        assert (used.returncode, used.stderr) == (0, "")
        assert "venv --clear" not in did
        assert (folder / ".venv").is_symlink()

    def test_clearing_a_borrowed_environment_leaves_the_lender_unharmed(self, folder: Path) -> None:
        lender = folder / "lender"
        program(lender / "bin" / "tool", "theirs")
        (folder / "requirements-dev.txt").write_text("")
        programs.borrow_environment(folder, lender=lender)
        assert (folder / ".venv" / "bin" / "tool").read_text() == "theirs"
        command: list[str | Path] = [
            sys.executable,
            "-m",
            "venv",
            "--clear",
            "--without-pip",
            folder / ".venv",
        ]
        subprocess.run(command, check=True)
        assert (lender / "bin" / "tool").read_text() == "theirs"
        assert [each.name for each in lender.rglob("*")] == ["bin", "tool"]

    def test_a_python_that_is_too_old_is_refused_with_a_message(self, folder: Path) -> None:
        for name in ("python3.11", "python3.12", "python3.13", "python"):
            program(folder / "bin" / name, self.PYTHON)
        ended, did = self.venv(folder, TOO_OLD="1")
        assert ended.returncode == 1
        assert "Python 3.11 or newer is required" in ended.stderr
        assert "venv --clear" not in did


class TestTest:
    """Stand-ins for the tools record which tools scripts/test calls, and in which order."""

    TOOL = """#!/bin/sh
echo "${STARTS:+STARTS=$STARTS }$(basename "$0") $*" >>"$LOG"
[ "$(basename "$0")" = "${FAILS:-}" ] && { echo "$FAILS failed"; exit 1; }
case "$(basename "$0") $*" in
  "coverage run -m pytest"*) echo "${SUMMARY:-== 3 passed in 0.1s ==}" ;;
esac
exit 0
"""
    TOOLS = ("python", "ruff", "mypy", "lint-imports", "coverage", "node", "npm", "chromium")

    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        (tmp_path / "scripts").mkdir()
        for name in ("check", "packages", "test"):
            shutil.copy(programs.ROOT / "scripts" / name, tmp_path / "scripts")
        program(tmp_path / "scripts" / "venv", "#!/bin/sh\n")
        program(tmp_path / "scripts" / "build-widget", self.TOOL)
        widget = tmp_path / "widget"
        for tool in ("prettier", "tsc"):
            program(widget / "node_modules" / ".bin" / tool, self.TOOL)
        for name in ("package-lock.json", "node_modules/installed-lock.json"):
            (widget / name).write_text("{}")
        (tmp_path / "tests").mkdir()
        (tmp_path / "tests" / "plain.py").write_text("import pytest\n")
        (tmp_path / "tests" / "html.py").write_text(
            "from tests.support.html import html_validator\n"
        )
        (tmp_path / "tests" / "tab.py").write_text(
            "import playwright\nfrom tests.emulator.clients import driver\n"
        )
        subprocess.run(["git", "init", "-q", tmp_path], check=True)
        for tool in self.TOOLS:
            program(tmp_path / ".venv" / "bin" / tool, self.TOOL)
        # Provide only the commands that the script itself uses.
        for name in ("bash", "sh", "dirname", "basename", "git", "grep", "mktemp", "tail", "tee"):
            found = shutil.which(name)
            assert found is not None
            (tmp_path / "bin").mkdir(exist_ok=True)
            (tmp_path / "bin" / name).symlink_to(found)
        for name in ("rm", "id", "cmp", "cp", "head"):
            (tmp_path / "bin" / name).symlink_to(str(shutil.which(name)))
        return tmp_path

    def gate(
        self, folder: Path, *arguments: Any, **settings: Any
    ) -> tuple[subprocess.CompletedProcess[str], Any]:
        log = folder / "log"
        log.write_text("")
        settings = {"PATH": str(folder / "bin"), "LOG": str(log), **settings}
        ended = programs.run([folder / "scripts" / "test", *arguments], cwd="/", **settings)
        return ended, log.read_text().splitlines()

    def test_it_ends_with_pytests_summary(self, folder: Path) -> None:
        ended, did = self.gate(folder)
        assert ended.returncode == 0, ended.stderr
        assert ended.stdout.splitlines()[-1] == "== 3 passed in 0.1s =="
        tools = [line.split()[0] for line in did]
        order = ("ruff", "lint-imports", "mypy", "prettier", "build-widget", "coverage")
        assert sorted(order, key=tools.index) == list(order)
        read = did.index("python -m pytest --collect-only -qq")
        assert read < next(n for n, line in enumerate(did) if line.startswith("coverage run"))
        assert did[-1] == "coverage report"

    @pytest.mark.parametrize(
        "tool", ["ruff", "mypy", "lint-imports", "prettier", "build-widget", "coverage"]
    )
    def test_it_fails_with_the_output_of_the_failing_tool(self, folder: Path, tool: str) -> None:
        ended, _ = self.gate(folder, FAILS=tool)
        assert ended.returncode != 0
        assert f"{tool} failed" in ended.stdout

    def test_with_arguments_it_passes_them_to_pytest(self, folder: Path) -> None:
        ended, did = self.gate(folder, "tests/plain.py::test_one", "-k", "two words")
        assert ended.returncode == 0
        assert did == ["python -m pytest tests/plain.py::test_one -k two words"]

    @pytest.mark.parametrize(
        ("path", "installed"),
        [
            ("tests/plain.py", set()),
            ("tests/html.py", {"tests/validator"}),
            ("tests/tab.py", {"tests/axe", "tests/emulator/clients/node"}),
            ("tests", {"tests/axe", "tests/emulator/clients/node", "tests/validator"}),
        ],
    )
    def test_chosen_tests_install_only_the_packages_they_use(
        self, folder: Path, path: str, installed: Any
    ) -> None:
        for each in ("tests/axe", "tests/emulator/clients/node", "tests/validator"):
            (folder / each / "node_modules").mkdir(parents=True)
            (folder / each / "package-lock.json").write_text("{}")
        ended, _ = self.gate(folder, path)
        assert ended.returncode == 0, ended.stderr
        stamps = folder.glob("tests/**/installed-lock.json")
        assert {str(each.parents[1].relative_to(folder)) for each in stamps} == installed

    def test_quick_runs_the_checks_but_no_slow_or_browser_tests(self, folder: Path) -> None:
        (folder / ".venv" / "bin" / "chromium").unlink()
        ended, did = self.gate(folder, "--quick", "--durations=5")
        assert ended.returncode == 0, ended.stderr
        assert "mypy " in did
        assert "--few-values -m not slow and not browser" in did[-1]
        assert "--ignore=tests/system/programs" in did[-1]
        assert did[-1].endswith("--durations=5")
        assert not [line for line in did if line.startswith(("coverage", "npm"))]

    def test_long_runs_everything_longer_and_without_coverage(self, folder: Path) -> None:
        ended, did = self.gate(folder, "--long")
        assert ended.returncode == 0, ended.stderr
        assert did == ["STARTS=10 python -m pytest -n 4 --dist worksteal"]

    def test_store_runs_the_chosen_tests_against_the_emulator(self, folder: Path) -> None:
        ended, did = self.gate(
            folder, "--store", "tests/plain.py", DATASTORE_EMULATOR_HOST="localhost:8081"
        )
        assert ended.returncode == 0, ended.stderr
        assert did == ["python -m pytest --store -n 4 --dist worksteal tests/plain.py"]

    def test_store_without_an_emulator_runs_nothing(self, folder: Path) -> None:
        ended, did = self.gate(folder, "--store")
        assert ended.returncode == 2
        assert "Set DATASTORE_EMULATOR_HOST" in ended.stderr
        assert did == []

    @pytest.mark.parametrize("tool", ["node", "npm", "chromium"])
    def test_a_missing_program_is_reported_at_the_end_and_fails_in_ci(
        self, folder: Path, tool: str
    ) -> None:
        (folder / ".venv" / "bin" / tool).unlink()
        ended, _ = self.gate(folder)
        assert ended.returncode == 0
        *_, said, summary = ended.stdout.splitlines()
        assert said.startswith("SKIPPED: no ")
        assert "passed" in summary
        in_ci, _ = self.gate(folder, CI="true")
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
        self, folder: Path, path: str, has_shell: bool, asked: list[str]
    ) -> None:
        (folder / "bin" / "id").unlink()
        program(folder / "bin" / "id", "#!/bin/sh\necho 0\n")
        program(folder / "bin" / "apt-get", self.TOOL)
        if has_shell:
            program(folder / "bin" / "chromium-headless-shell", self.TOOL)
        ended, did = self.gate(folder, path)
        assert ended.returncode == 0, ended.stderr
        calls = [line.split() for line in did if line.startswith("apt-get")]
        assert [call[1] for call in calls] == asked
        assert all(call[-1] == "chromium-headless-shell" for call in calls[1:])
        # Without the shell, the tests run in the whole browser.
        ended, did = self.gate(folder, path, FAILS="apt-get")
        assert ended.returncode == 0, ended.stderr
        assert did[-1] == f"python -m pytest {path}"

    @pytest.mark.parametrize(
        "packages", ["tests/emulator/clients/node", "tests/validator", "tests/axe"]
    )
    def test_npm_packages_of_tests_are_installed_once(self, folder: Path, packages: str) -> None:
        client = folder / packages
        (client / "node_modules").mkdir(parents=True)
        (client / "package-lock.json").write_text("{}")
        assert "npm ci" in " ".join(self.gate(folder)[1])
        assert "npm ci" not in " ".join(self.gate(folder)[1])
        (client / "package-lock.json").write_text('{"changed": 1}')
        ended, did = self.gate(folder, FAILS="npm")
        assert "npm ci" in " ".join(did)
        assert "SKIPPED: npm ci failed" in ended.stdout
        assert self.gate(folder, FAILS="npm", CI="true")[0].returncode == 1

    def test_a_skipped_test_fails_in_ci_unless_it_needs_private_data(self, folder: Path) -> None:
        of_tools = "SKIPPED [1] tests/t.py:1: no such tool\n== 3 passed, 1 skipped in 0.1s =="
        of_data = of_tools.replace("no such tool", "needs a.xml of the shared data")
        assert self.gate(folder, SUMMARY=of_tools)[0].returncode == 0
        assert self.gate(folder, SUMMARY=of_tools, CI="true")[0].returncode == 1
        assert self.gate(folder, SUMMARY=of_data, CI="true")[0].returncode == 0


def test_every_script_is_executable() -> None:
    scripts = programs.ROOT / "scripts"
    for path in [*scripts.iterdir(), *(scripts / "hooks").iterdir(), programs.ROOT / ".ci" / "run"]:
        if path.is_file() and path.read_text().startswith("#!"):
            assert path.stat().st_mode & stat.S_IXUSR, path


@pytest.mark.parametrize("version", ["3.11.0", "3.11.3", "3.12.0", "3.13.0"])
def test_the_pins_are_complete_for_every_python(version: str) -> None:
    # The lock file is made with one version of Python. Older versions may need additional packages.
    for name in ("requirements.txt", "requirements-dev.txt"):
        text = (programs.ROOT / name).read_text()
        pinned = {utils.canonicalize_name(n) for n in re.findall(r"(?m)^([\w.-]+)==", text)}
        environment = {"python_full_version": version, "python_version": version[:4], "extra": ""}
        for package in pinned:
            try:
                needed = metadata.requires(package) or []
            except metadata.PackageNotFoundError:
                continue  # this version of Python does not need the package
            for requirement in map(requirements.Requirement, needed):
                if requirement.marker is None or requirement.marker.evaluate(environment):
                    assert utils.canonicalize_name(requirement.name) in pinned, package


@pytest.mark.parametrize(
    ("subject", "status"),
    [
        ("a" * 60, 0),
        ("a" * 61, 1),
        ("fixup! " + "a" * 60, 0),
        ("Short\n\n" + "a" * 70, 0),
    ],
)
def test_a_commit_subject_has_at_most_60_characters(
    tmp_path: Path, subject: str, status: int
) -> None:
    (tmp_path / "message").write_text(subject + "\n")
    hook = programs.ROOT / "scripts" / "hooks" / "commit-msg"
    assert programs.run([hook, tmp_path / "message"], cwd=tmp_path).returncode == status


def test_few_values_is_the_first_value_of_each_test() -> None:
    path = Path(__file__).relative_to(programs.ROOT)
    asked = ["--collect-only", "-q", "--few-values", "-k", "commit_subject"]
    said = programs.run([sys.executable, "-m", "pytest", *asked, path], cwd=programs.ROOT)
    assert said.stdout.count("::test_a_commit_subject_has_at_most_60_characters[") == 1


def test_collected_tests_are_exempt_from_garbage_collection() -> None:
    assert gc.get_freeze_count() > 10_000
