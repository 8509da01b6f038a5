"""Names from before the reorganization into rooms work until 1.0, with one warning for each."""

import logging
from pathlib import Path
from typing import Any

import flask
import pytest

from comments import app as apps
from comments import config
from comments.cli import commands
from comments.store import connection

SECRET = "a secret of thirty-two characters"
# An operator's earlier flatthread.env, with each setting under its old name.
OLD_FILE = f"""
# Behind nginx, with mail.
SECRET={SECRET}
PROXIES=1
GUEST_TERM=3600
EDIT_WINDOW=600
SMTP_URL=smtps://user:password@mail.example:465
SMTP_AUTHORITY=/etc/ssl/authority.pem
MAIL_FROM=comments@blog.example
PUBLIC_URL=https://comments.example
TASKS_SECRET=0123456789abcdef0123
"""
# The commands in the old README.
OLD_COMMANDS = """
account invite; account list; account remove; account reset; account role; adviser akismet
adviser webhook; adviser show; adviser rotate; adviser remove; author erase; author export
budget set; budget show; delivery dead; delivery drop; delivery revive; delivery show
delivery status; fold; forget; guard set; guard show; guard turnstile; guard no-turnstile
hook add; hook list; hook on; hook remove; hook rotate; hook test; import; key add; key list
key remove; moderate approve; moderate ban; moderate log; moderate policy; moderate queue
moderate thread; provider add; recount; repair; rule add; rule test; secret renew; site add
site list; site set; stats categories; stats commenters; stats days; stats site; stats threads
thread set
"""
OLD_CRON = ["/tasks/deliver", "/tasks/fold", "/tasks/compact"]


def test_an_old_settings_file_keeps_its_meaning(tmp_path: Path) -> None:
    path = tmp_path / "flatthread.env"
    path.write_text(OLD_FILE)
    found = config.load({"FLATTHREAD_CONFIG": str(path)})
    assert (found.trusted_proxies, found.guest_token_seconds, found.edit_window) == (1, 3600, 600)
    assert found.smtp is not None
    assert found.smtp.ca_file == "/etc/ssl/authority.pem"
    assert sorted(found.old_names) == sorted(config.OLD_NAMES)
    said = " ".join(found.advice)
    for old, new in config.OLD_NAMES.items():
        assert said.count(f"The setting {old} was renamed to {new}") == 1


@pytest.mark.parametrize(
    ("file", "environ", "proxies"),
    [
        ("PROXIES=1", {"TRUSTED_PROXIES": "2"}, 2),
        ("TRUSTED_PROXIES=1", {"PROXIES": "2"}, 2),
        ("PROXIES=1", {"PROXIES": ""}, 1),
        ("PROXIES=1\nTRUSTED_PROXIES=3", {}, 3),
        ("TRUSTED_PROXIES=1", {"PROXIES": "2", "TRUSTED_PROXIES": ""}, 2),
    ],
)
def test_the_environment_overrides_the_file_under_either_name(
    tmp_path: Path, file: str, environ: dict[str, str] | dict[str, object], proxies: int
) -> None:
    path = tmp_path / "flatthread.env"
    path.write_text(f"SECRET={SECRET}\n{file}\n")
    found = config.load({"FLATTHREAD_CONFIG": str(path), **environ})  # type: ignore[dict-item]
    assert found.trusted_proxies == proxies


def test_current_names_cause_no_warning() -> None:
    assert config.load({"SECRET": SECRET, "TRUSTED_PROXIES": "1"}).advice == ()


@pytest.mark.parametrize(
    "words", [each.strip() for each in OLD_COMMANDS.replace("\n", ";").split(";") if each.strip()]
)
def test_every_command_of_the_old_readme_exists(app: flask.Flask, words: Any) -> None:
    told = app.test_cli_runner().invoke(args=[*words.split(), "--help"])
    assert told.exit_code == 0, told.output
    assert told.stdout.startswith("Usage: ")


@pytest.mark.parametrize("name", sorted(commands.OLD_NAMES))
def test_an_old_command_warns_once_and_is_not_listed(
    app: flask.Flask, site: object, name: str
) -> None:
    runner = app.test_cli_runner()
    arguments = {
        "adviser": ["show", "demo"], "fold": [], "guard": ["show", "demo"],
        "hook": ["list", "demo"], "key": ["list", "demo"],
    }[name]  # fmt: skip
    current = commands.OLD_NAMES[name].name
    assert current is not None
    told = runner.invoke(args=[name, *arguments])
    assert told.exit_code == 0, told.output
    assert told.stderr.count(f"Use `{current}` instead.") == 1
    now = runner.invoke(args=[current, *arguments])
    assert (now.stdout, "instead" in now.stderr) == (told.stdout, False)
    listed = runner.invoke(args=["--help"]).output
    assert f"\n  {current}" in listed
    assert f"\n  {name} " not in listed


def test_the_old_cron_file_works_with_one_warning(
    open_store: connection.Store, caplog: pytest.LogCaptureFixture
) -> None:
    settings = config.Settings(secret=SECRET, tasks_secret="0123456789abcdef")
    client = apps.create_app(settings, open_store).test_client()
    headers = {"Authorization": "Bearer 0123456789abcdef"}
    with caplog.at_level(logging.WARNING, "flatthread"):
        for _ in range(2):
            for path in OLD_CRON:
                assert client.get(path, headers=headers).status_code == 200
    for path in ("/tasks/fold", "/tasks/compact"):
        assert caplog.text.count(f"{path} was renamed to /tasks/upkeep") == 1
    assert client.get("/tasks/fold").status_code == 403
