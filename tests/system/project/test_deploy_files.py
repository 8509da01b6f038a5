"""The files that run the service on one machine agree with each other and with the documents."""

import json
import re
import shutil
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from comments import config
from tests.support import loopback_servers, optional_tools, programs

FOLDER = programs.ROOT / "deploy"
DEPLOYING = (programs.ROOT / "docs" / "deploying.md").read_text()
DOCKERFILE = (programs.ROOT / "Dockerfile").read_text()
# The unit's exposure by the measure of `systemd-analyze security`, of 100.
EXPOSURE = "25"


@pytest.mark.parametrize("path", sorted(FOLDER.iterdir()), ids=lambda path: path.name)
def test_the_document_quotes_each_file(path: Path) -> None:
    assert re.search(rf"^```\w*\n{re.escape(path.read_text())}```$", DEPLOYING, re.MULTILINE)


def test_the_unit_is_valid_and_hardened(tmp_path: Path) -> None:
    program = shutil.which("systemd-analyze")
    optional_tools.require(program, "needs systemd-analyze")
    assert program is not None
    unit = tmp_path / "flatthread.service"
    text = (FOLDER / unit.name).read_text()
    unit.write_text(text.replace("/opt/flatthread/bin/flatthread", "/bin/true"))
    assert analyze(program, "verify", unit) == ""
    analyze(program, "security", "--offline=true", f"--threshold={EXPOSURE}", unit)


def analyze(program: str, *arguments: Any) -> str:
    done = programs.run([program, *arguments], cwd="/")
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stderr


def test_every_service_of_the_compose_file_is_confined() -> None:
    composed = yaml.safe_load((programs.ROOT / "compose.yaml").read_text())
    assert set(composed["services"]) == {"flatthread", "caddy"}
    for service in composed["services"].values():
        assert service["read_only"] is True
        assert service["cap_drop"] == ["ALL"]
        assert service["security_opt"] == ["no-new-privileges:true"]
        assert set(service["environment"]) <= config.NAMES
        # Only the proxy reaches the service from outside.
        assert all(each.startswith("127.0.0.1:") for each in service.get("ports", []))
        for volume in service["volumes"]:
            source, target = volume.split(":")[:2]
            if source.startswith("."):
                assert (programs.ROOT / source).is_file()
            else:
                assert source in composed["volumes"]
                assert target == "/data"


def test_the_image_stores_data_where_the_volume_is() -> None:
    assert "FLATTHREAD_DATA=/data " in DOCKERFILE
    assert re.findall(r"^VOLUME (.*)$", DOCKERFILE, re.MULTILINE) == ["/data"]


def test_the_image_is_built_from_all_files_of_the_package() -> None:
    project = tomllib.loads((programs.ROOT / "pyproject.toml").read_text())
    wheel = project["tool"]["hatch"]["build"]["targets"]["wheel"]
    needed = {
        *wheel["only-include"],
        *wheel["force-include"],
        *project["project"]["license-files"],
        project["project"]["readme"],
        *re.findall(r"requirements\S*\.txt", DOCKERFILE),
        # The version and the dependencies come from these.
        *("pyproject.toml", "hatch_build.py", "requirements.in"),
    }
    ignored = (programs.ROOT / ".dockerignore").read_text().splitlines()
    assert {line[1:] for line in ignored if line.startswith("!")} == needed


@pytest.mark.parametrize(("status", "code"), [(200, 0), (503, 1)])
def test_the_health_check_tells_whether_the_service_answers(status: int, code: int) -> None:
    (found,) = re.findall(r"^HEALTHCHECK .* CMD (\[.*?\])$", DOCKERFILE, re.MULTILINE | re.DOTALL)
    command = json.loads(found.replace("\\\n", ""))
    assert command[0] == "python3"
    with loopback_servers.receiver() as service:
        service.status = status
        done = programs.run([sys.executable, *command[1:]], cwd="/", PORT=str(service.port))
    assert (done.returncode, service.heard[0].path) == (code, "/healthz")


def test_the_settings_that_the_document_shows_are_valid() -> None:
    (shown,) = re.findall(r"^```text\n(PUBLIC_URL=.*?)^```$", DEPLOYING, re.MULTILINE | re.DOTALL)
    values = dict(line.split("=", 1) for line in shown.splitlines())
    assert set(values) <= config.NAMES
    loaded = config.load({**values, "SECRET": "0123456789abcdef"})
    assert loaded.smtp is not None
    assert loaded.smtp.user == loaded.mail_from
