"""The documents are correct about commands, routes, settings, links and names."""

import dataclasses
import json
import re
import shlex
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import flask.testing
import pytest

import flatthread
from comments import config
from comments.cli import command_table as cli_commands
from flatthread import command_line
from tests.support import programs

DOCS = programs.ROOT / "docs"
README = (programs.ROOT / "README.md").read_text()
API = (DOCS / "api.md").read_text()
SETTINGS = (DOCS / "settings.md").read_text()
FOLDERS = ("", "docs", "docs/ideas", "emulator", "emulator/docs", "benchmarks")
DOCUMENTS = sorted(path for folder in FOLDERS for path in (programs.ROOT / folder).glob("*.md"))
# Settings of `flatthread serve`, which config.py does not read.
OTHERS = {"HOST": "127.0.0.1", "PORT": "8080"}


def shown(path: Path) -> str:
    return str(path.relative_to(programs.ROOT))


def shell_blocks(text: str) -> str:
    """Return the contents of all code fences without a language or with plain text."""
    fenced = re.findall(r"^```(\w*)\n(.*?)^```$", text, flags=re.DOTALL | re.MULTILINE)
    return "".join(block for language, block in fenced if language in {"", "text"})


def commands(text: str) -> list[str]:
    """Return the lines in a text's shell blocks, with continued lines joined."""
    return shell_blocks(text).replace("\\\n", "").splitlines()


def documented_commands(path: Path) -> Iterator[list[str]]:
    """Yield the words after `flatthread` of each command in a document's shell blocks."""
    for line in commands(path.read_text()):
        before, found, after = line.partition("flatthread ")
        if found and before.strip() in {"", ".venv/bin/", "python -m"}:
            yield shlex.split(after)


def leaves(command: click.Command, *words: str) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Yield each command below a group with its words."""
    if isinstance(command, cli_commands.Deferred):
        command = command.load()
    if not isinstance(command, click.Group):
        yield words, command
        return
    for name, each in command.commands.items():
        yield from leaves(each, *words, name)


def table_rows(text: str) -> list[list[str]]:
    lines = [line for line in text.splitlines() if line.startswith("|") and "---" not in line]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A fresh clone that uses the already installed packages, because installation is slow."""
    folder = programs.copy_project(tmp_path_factory.mktemp("fresh") / "clone with a space")
    programs.borrow_environment(folder)
    assert programs.run([folder / "scripts" / "venv", "requirements.txt"], cwd="/").returncode == 0
    return folder


def run(clone: Any, command: str, **settings: Any) -> Any:
    return programs.run(["sh", "-c", command], cwd=clone, **settings)


def test_the_guide_for_contributors_names_the_readmes_command_for_tests() -> None:
    _, test = commands(README)
    assert f"{test}`" in (programs.ROOT / "CONTRIBUTING.md").read_text()


@pytest.mark.slow
def test_the_readmes_first_command_serves_a_thread_and_says_how_to_become_owner(clone: Any) -> None:
    with programs.running(
        ["sh", "-c", f"exec {commands(README)[0]}"],
        environ=programs.environment(PORT="0"),
        cwd=clone,
    ) as program:
        url = program.wait_for(r"answers at (http://\S+/)")[1]
        kept = program.wait_for(r"The link to become the owner is in (.*)")[1]
        assert Path(kept).read_text().startswith(f"{url}admin/welcome#")
        status, page = programs.fetch(url)
        assert status == 200
        script = re.search(rb'<script[^>]* src="(\S+)"', page)
        assert script is not None
        assert programs.fetch(url + script[1].decode())[0] == 200
        status, thread = programs.fetch(f"{url}api/v1/sites/demo/comments?thread=demo")
        assert (status, b'"total":4' in thread) == (200, True)
        assert program.stop() == 0
    assert (clone / "data").is_dir()


@pytest.mark.slow
def test_the_readmes_second_command_runs_tests(clone: Any) -> None:
    # With a path, because the command itself runs this test too.
    path = "tests/comments/domain/test_guest_addresses.py"
    ended = run(clone, f"{commands(README)[1]} {path}")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert re.search(r"= \d+ passed in ", ended.stdout)


@pytest.mark.slow
def test_the_documents_commands_for_sites_and_imports_work_one_after_the_other(clone: Any) -> None:
    shutil.copy(
        programs.ROOT / "tests" / "fixtures" / "imports" / "disqus.xml", clone / "export.xml"
    )
    importing = commands((DOCS / "importing.md").read_text())
    lines = [line for line in importing if line.startswith(".venv/bin/flatthread ")][:3]
    added, tried, imported = (run(clone, line, FLATTHREAD_DATA="readme") for line in lines)
    assert (added.returncode, tried.returncode, imported.returncode) == (0, 0, 0), imported.stderr
    assert "nothing was stored" in tried.stdout
    number = re.search(
        r"^Added (\d+) comments in \d+ threads?; 0 existed already", imported.stdout, re.MULTILINE
    )
    assert number is not None
    assert int(number[1]) > 0
    again = run(clone, lines[2], FLATTHREAD_DATA="readme")
    assert f"; {number[1]} existed already" in again.stdout


def test_every_command_that_a_document_mentions_is_one() -> None:
    text = "".join(path.read_text() for path in DOCUMENTS)
    known = {words for words, _ in leaves(command_line.group)}
    groups = {words[:1] for words in known}
    for spelled in set(re.findall(r"[`/]flatthread ([a-z][a-z-]*(?: [a-z-]+)?)", text)):
        words = tuple(spelled.split())
        assert words[:1] in known or words in known or words in groups, spelled


@pytest.mark.parametrize("path", DOCUMENTS, ids=shown)
def test_every_command_in_a_document_takes_the_options_it_is_shown_with(path: Path) -> None:
    known = dict(leaves(command_line.group))
    for given in documented_commands(path):
        command = known.get(tuple(given[:2])) or known.get(tuple(given[:1]))
        assert command is not None, given
        options = {
            name for option in command.params for name in (*option.opts, *option.secondary_opts)
        }
        assert {word for word in given if word.startswith("--")} <= options, given


def test_the_document_of_the_command_line_lists_every_command() -> None:
    text = (DOCS / "command-line.md").read_text()
    listed = re.findall(r"^\| `([a-z-]+(?: [a-z-]+)*)[^`]*` \|", text, flags=re.MULTILINE)
    known = {" ".join(words) for words, _ in leaves(command_line.group)}
    assert len(listed) == len(set(listed))
    assert set(listed) == known


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
    embedding = (DOCS / "embedding.md").read_text()
    shortlist = re.findall(r"^\| `([A-Z]+) (/[^`]*)` \|", embedding, flags=re.MULTILINE)
    assert shortlist
    assert set(shortlist) <= served


def anchors(text: str) -> set[str]:
    """Return the anchors of a document's headings, as GitHub generates them."""
    heads = re.findall(r"^#+ (.*)$", text, flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).strip().replace(" ", "-") for head in heads}


@pytest.mark.parametrize("document", DOCUMENTS, ids=shown)
def test_every_link_between_documents_has_a_target(document: Path) -> None:
    for target in re.findall(r"\]\(([^)\s:]+)\)", document.read_text()):
        name, _, anchor = target.partition("#")
        path = document.parent / name if name else document
        assert path.exists(), target
        assert not anchor or anchor in anchors(path.read_text()), target


def test_the_index_of_the_documents_names_all_of_them() -> None:
    index = (DOCS / "README.md").read_text()
    named = {target.partition("#")[0] for target in re.findall(r"\]\(([^)\s:]+)\)", index)}
    documents = {str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md")}
    assert documents - {"README.md"} <= named


def test_the_changelog_and_the_supported_versions_begin_with_this_version() -> None:
    changelog, security = (
        (programs.ROOT / name).read_text() for name in ("CHANGELOG.md", "SECURITY.md")
    )
    headings = re.findall(r"^## \[(.*)\]", changelog, flags=re.MULTILINE)
    assert headings[0] == flatthread.__version__
    assert f"{headings[0].rpartition('.')[0]}.x | yes |" in security


def test_the_guide_for_contributors_names_existing_files() -> None:
    guide = (programs.ROOT / "CONTRIBUTING.md").read_text()
    named = re.findall(r"`((?:[\w.]+/)+[\w.]*)[ `]", guide)
    assert {"comments/config.py", "scripts/check", "docs/settings.md"} <= set(named)
    assert [path for path in named if not (programs.ROOT / path).exists()] == []


def test_the_settings_page_lists_all_settings_with_their_defaults() -> None:
    rows = {
        row[0].strip("`"): row[1].strip("`") for row in table_rows(SETTINGS) if row[0] != "name"
    }
    listed = {name: default for name, default in rows.items() if name not in OTHERS}
    assert set(listed) == config.NAMES
    assert {name: rows[name] for name in OTHERS} == OTHERS
    # Explicitly setting a default changes nothing.
    secret = {"SECRET": "0123456789abcdef"}
    given = {n: d for n, d in listed.items() if d not in {"unset", "made once"}}
    assert config.load(given | secret) == config.load(secret)
    loaded = config.load(secret)
    defaults = {str(getattr(loaded, field.name)) for field in dataclasses.fields(loaded)}
    assert {d for d in given.values() if d.isdecimal()} - {"2", "8"} <= {
        d.removesuffix(".0") for d in defaults
    }


def test_the_architecture_names_existing_rooms_and_modules() -> None:
    text = (DOCS / "architecture.md").read_text()
    named = set(re.findall(r"`((?:[a-z_]+/)+[a-z_]+)`", text))
    assert len(named) > 20
    for name in named:
        places = [programs.ROOT / "comments" / name, programs.ROOT / name]
        assert any(each.is_dir() or each.with_suffix(".py").exists() for each in places), name


@pytest.mark.slow
def test_the_picture_of_the_rooms_matches_the_code() -> None:
    drawn = programs.run([sys.executable, "scripts/rooms.py", "--check"], cwd=programs.ROOT)
    assert drawn.returncode == 0, drawn.stdout


def test_the_documents_quote_what_the_program_prints_and_shows() -> None:
    people, moderation = ((DOCS / name).read_text() for name in ("people.md", "moderation.md"))
    printed = (programs.ROOT / "flatthread" / "serving.py").read_text()
    quoted = re.search(r"^There is.*\n.*once:", people, flags=re.MULTILINE)
    assert quoted is not None
    for line in quoted[0].replace("data/first-owner", "").splitlines():
        assert line.strip() in printed
    pages = re.findall(r"^\| ([A-Z][a-z]+)(?:, [^|]*)? \|", moderation, flags=re.MULTILINE)
    texts = json.loads(
        (programs.ROOT / "comments" / "domain" / "languages" / "en" / "admin.json").read_text()
    )
    menu = {text for key, text in texts.items() if key.startswith("nav-")}
    assert len(menu) > 5
    assert menu <= set(pages)


def test_the_page_on_scaling_counts_the_composite_indexes() -> None:
    count = (programs.ROOT / "index.yaml").read_text().count("\n- kind:")
    assert f"| 200 | {count} are used |" in (DOCS / "scaling.md").read_text()
