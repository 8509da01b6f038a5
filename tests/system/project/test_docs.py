"""What the documents say is so."""

import dataclasses
import re
import shutil
import sys
from typing import Any

import flask.testing
import pytest

from comments import config
from tests.support import programs

README = (programs.ROOT / "README.md").read_text()
API = (programs.ROOT / "docs" / "api.md").read_text()
SETTINGS = (programs.ROOT / "docs" / "settings.md").read_text()
# Of scripts/serve, which config.py does not read.
OTHERS = {"HOST": "127.0.0.1", "PORT": "8080"}


def plain_blocks(text: str) -> str:
    """What stands in fences without a language, one block after the other."""
    fenced = re.findall(r"^```(\w*)\n(.*?)^```$", text, flags=re.DOTALL | re.MULTILINE)
    return "".join(block for language, block in fenced if not language)


def commands(text: str) -> list[str]:
    """The lines of the text's shell blocks, continued lines as one."""
    return plain_blocks(text).replace("\\\n", "").splitlines()


def table_rows(text: str) -> list[list[str]]:
    lines = [line for line in text.splitlines() if line.startswith("|") and "---" not in line]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A fresh clone, but for the time it takes to install what is installed here."""
    folder = programs.copy_project(tmp_path_factory.mktemp("fresh") / "clone with a space")
    programs.borrow_environment(folder)
    return folder


def run(clone: Any, command: str, **settings: Any) -> Any:
    return programs.run(["sh", "-c", command], cwd=clone, **settings)


def test_the_readme_shows_both_commands() -> None:
    assert {"scripts/serve", "scripts/test"} <= set(commands(README))


def test_the_readmes_serve_command_answers_on_a_fresh_clone(clone: Any) -> None:
    with programs.running(
        ["sh", "-c", "exec scripts/serve"], environ=programs.environment(PORT="0"), cwd=clone
    ) as program:
        url = program.wait_for(r"answers at (http://\S+/)")[1]
        assert programs.fetch(f"{url}healthz")[0] == 200
        status, page = programs.fetch(url)
        assert status == 200
        script = re.search(rb'<script[^>]* src="(\S+)"', page)
        assert script is not None
        assert programs.fetch(url + script[1].decode())[0] == 200
        status, thread = programs.fetch(f"{url}api/v1/sites/demo/comments?thread=demo")
        assert (status, b'"total":0' in thread) == (200, True)
        assert program.stop() == 0
    assert (clone / "data").is_dir()


def test_the_readmes_commands_for_sites_and_imports_work_one_after_the_other(clone: Any) -> None:
    shutil.copy(
        programs.ROOT / "tests" / "fixtures" / "imports" / "disqus.xml", clone / "export.xml"
    )
    shown = [line for line in commands(README) if line.startswith(".venv/bin/flask")]
    assert len(shown) == 3
    added, tried, imported = (run(clone, line, DATA_DIR="readme") for line in shown)
    assert (added.returncode, tried.returncode, imported.returncode) == (0, 0, 0), imported.stderr
    assert "nothing was stored" in tried.stdout
    number = re.search(
        r"^(\d+) comments added, 0 were there already", imported.stdout, re.MULTILINE
    )
    assert number is not None
    assert int(number[1]) > 0
    again = run(clone, shown[2], DATA_DIR="readme")
    assert f"0 comments added, {number[1]} were there already" in again.stdout


def test_every_command_the_readme_mentions_is_one(app: flask.Flask) -> None:
    mentioned = set(re.findall(r"flask --app main ([a-z-]+(?: [a-z-]+)?)", README))
    mentioned = {words.removesuffix(" export").removesuffix(" wordpress") for words in mentioned}
    assert "repair" in mentioned
    for words in mentioned:
        told = app.test_cli_runner().invoke(args=[*words.split(), "--help"])
        assert told.exit_code == 0, told.output
        assert told.output.startswith("Usage: ")


def test_the_tables_of_the_api_are_the_url_map(app: flask.Flask) -> None:
    parameters = {"site_id": "site", "comment_id": "id"}
    served = {
        (
            method,
            re.sub(r"<(?:\w+:)?(\w+)>", lambda m: f"{{{parameters.get(m[1], m[1])}}}", rule.rule),
        )
        for rule in app.url_map.iter_rules()
        for method in rule.methods - {"HEAD", "OPTIONS"}  # type: ignore[operator]
    }
    listed = re.findall(r"^\| ([A-Z]+) `(/[^`]*)` \|", API, flags=re.MULTILINE)
    assert len(listed) == len(set(listed))
    assert set(listed) == served
    shown = re.findall(r"^\| `([A-Z]+) (/[^`]*)` \|", README, flags=re.MULTILINE)
    assert shown
    assert set(shown) <= served


def test_every_link_between_documents_leads_somewhere() -> None:
    for document in (*programs.ROOT.glob("*.md"), *(programs.ROOT / "docs").glob("*.md")):
        for target in re.findall(r"\]\(([^)#:]+)\)", document.read_text()):
            assert (document.parent / target).exists(), f"{document.name}: {target}"


def test_the_guide_for_contributors_names_what_exists() -> None:
    guide = (programs.ROOT / "CONTRIBUTING.md").read_text()
    named = re.findall(r"`((?:[\w.]+/)+[\w.]*)[ `]", guide)
    assert {"comments/config.py", "scripts/check", "docs/settings.md"} <= set(named)
    assert [path for path in named if not (programs.ROOT / path).exists()] == []


def test_the_settings_are_those_of_the_program_with_their_defaults() -> None:
    rows = {
        row[0].strip("`"): row[1].strip("`") for row in table_rows(SETTINGS) if row[0] != "name"
    }
    listed = {name: default for name, default in rows.items() if name not in OTHERS}
    assert set(listed) == config.NAMES
    assert {name: rows[name] for name in OTHERS} == OTHERS
    # The defaults, given, change nothing.
    secret = {"SECRET": "0123456789abcdef"}
    given = {n: d for n, d in listed.items() if d not in {"unset", "made once"}}
    assert config.load(given | secret) == config.load(secret)
    loaded = config.load(secret)
    defaults = {str(getattr(loaded, field.name)) for field in dataclasses.fields(loaded)}
    assert {d for d in given.values() if d.isdecimal()} - {"2", "8"} <= {
        d.removesuffix(".0") for d in defaults
    }


def test_the_architecture_names_rooms_and_modules_that_are_there() -> None:
    text = (programs.ROOT / "docs" / "architecture.md").read_text()
    named = set(re.findall(r"`((?:[a-z_]+/)+[a-z_]+)`", text))
    assert len(named) > 20
    for name in named:
        places = [programs.ROOT / "comments" / name, programs.ROOT / name]
        assert any(each.is_dir() or each.with_suffix(".py").exists() for each in places), name


def test_the_picture_of_the_rooms_is_what_the_code_says() -> None:
    drawn = programs.run([sys.executable, "scripts/rooms.py", "--check"], cwd=programs.ROOT)
    assert drawn.returncode == 0, drawn.stdout
