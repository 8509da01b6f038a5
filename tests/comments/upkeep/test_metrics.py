"""Test the numbers for monitoring systems: their values, their formats, and who may read them."""

import dataclasses
import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest
from flask.testing import FlaskClient
from hypothesis import given
from hypothesis import strategies as st

import embedded_engine
from comments import app as apps
from comments import config, errors
from comments.domain import records
from comments.sites import site_settings
from comments.store import connection
from comments.upkeep import metrics
from comments.upkeep.backups import nightly_backup
from tests.support.threads import sample_threads

TOKEN = "a token of the tests"
MONITOR = {"Authorization": f"Bearer {TOKEN}"}
Read = Callable[..., FlaskClient]


@pytest.fixture
def monitored(open_store: connection.Store, tmp_path: Path) -> FlaskClient:
    settings = dataclasses.replace(
        sample_threads.SETTINGS,
        metrics_token=TOKEN,
        data_dir=tmp_path,
        public_url="https://c.example",
    )
    return apps.create_app(settings, open_store).test_client()


@pytest.mark.parametrize("path", ["/metrics", "/metrics.json"])
def test_only_the_token_opens_the_numbers(
    monitored: FlaskClient, client: FlaskClient, path: str
) -> None:
    assert client.get(path, headers=MONITOR).status_code == 404
    for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": TOKEN}):
        assert monitored.get(path, headers=headers).status_code == 401
    # A monitoring system may use any name of the machine.
    response = monitored.get(path, headers=MONITOR, base_url="http://10.0.0.1")
    assert response.status_code == 200
    assert response.headers["Cache-Control"] == "no-store"


def test_a_short_token_is_refused() -> None:
    with pytest.raises(errors.Misconfigured, match=r"^METRICS_TOKEN must have at least"):
        config.load({"FLATTHREAD_DATA": "nowhere", "SECRET": "s" * 32, "METRICS_TOKEN": "short"})


def test_the_numbers_describe_the_service(
    monitored: FlaskClient, store: connection.Store, site: records.Site
) -> None:
    site_settings.change("demo", budget={"posts": 500})
    sample_threads.post(site, "one")
    text = monitored.get("/metrics", headers=MONITOR).text
    lines = text.splitlines()
    assert "# TYPE flatthread_pending_events gauge" in lines
    assert "flatthread_pending_events 1" in lines
    assert "flatthread_dead_letters 0" in lines
    assert "flatthread_lost_changes 0" in lines
    assert 'flatthread_budget_limit{site="demo",budget="posts"} 500' in lines
    assert len(lines) == len(set(lines))
    answer = json.loads(monitored.get("/metrics.json", headers=MONITOR).text)
    assert {"name": "pending_events", "value": 1, "labels": {}} in answer
    assert len(answer) == sum(not line.startswith("#") for line in lines)


def test_files_and_backups_are_measured(tmp_path: Path) -> None:
    folder, backups = tmp_path / "data", tmp_path / "backups"
    folder.mkdir()
    now = datetime.now(UTC)
    settings = dataclasses.replace(sample_threads.SETTINGS, data_dir=folder, backup_dir=backups)
    record = nightly_backup.Record(str(backups), last=now - timedelta(hours=2))
    (folder / "backup.json").write_bytes(msgspec.json.encode(record))
    engine = embedded_engine.DataFiles()
    with engine.open_store(settings.data_file, settings) as opened, opened.context():
        values = {m.name: m.value for m in metrics.collect(settings, now=now)}
    assert values["store_bytes"] == settings.data_file.stat().st_size
    assert values["disk_free_bytes"] > 0
    assert (values["store_writable"], values["backup_seconds"]) == (1, 7200)
    assert values["backup_overdue"] == 0


@given(st.text())
def test_labels_are_escaped(text: str) -> None:
    (_, _, line) = metrics.prometheus([metrics.Metric("a", "b", 1, (("site", text),))]).split(
        "\n", 2
    )
    quoted = line.removeprefix('flatthread_a{site="').removesuffix('"} 1\n')
    assert "\n" not in quoted
    decoded, escaped = "", False
    for character in quoted:
        if escaped:
            decoded += {"n": "\n"}.get(character, character)
            escaped = False
        elif character == "\\":
            escaped = True
        else:
            assert character != '"'
            decoded += character
    assert decoded == text
