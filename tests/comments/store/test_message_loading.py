"""Message types are loaded without libraries that the service does not use."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from tests.support import programs

UNUSED = ("google.auth", "google.oauth2", "google.cloud.ndb", "requests")
LOAD = """
import sys
from comments.store import message_loading
message_loading.load()
"""
START = ("import main; main.app", "import flatthread.serving")


def python(program: str, *arguments: str, **settings: str) -> "subprocess.CompletedProcess[str]":
    return programs.run([sys.executable, "-c", program, *arguments], cwd=programs.ROOT, **settings)


def run(program: str, *arguments: str, **settings: str) -> "subprocess.CompletedProcess[str]":
    return python(LOAD + program, *arguments, **settings)


def printed(program: str, *arguments: str, **settings: str) -> str:
    ended = run(program, *arguments, **settings)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.strip()


@pytest.mark.parametrize("start", START)
def test_a_start_loads_no_library_that_the_service_does_not_use(tmp_path: Path, start: str) -> None:
    program = f"{start}\nimport sys\nprint(*sys.modules)"
    ended = python(program, FLATTHREAD_DATA=str(tmp_path))
    names = set(ended.stdout.split())
    assert "google.cloud.datastore_v1.types" in names, ended.stderr
    assert names.isdisjoint({"cryptography", "urllib3", *UNUSED})


@pytest.mark.parametrize("name", ["google.auth.transport.requests", *UNUSED])
def test_a_later_import_gives_the_library_itself(name: str) -> None:
    program = """
import importlib
library = importlib.import_module(sys.argv[1])
root = sys.modules[sys.argv[1].partition(".")[0]]
for part in sys.argv[1].split(".")[1:]:
    root = getattr(root, part)
assert root is library
print(library.__file__)
"""
    folder = Path(*name.split("."))
    assert str(folder) in printed(program, name)


def test_the_client_has_the_same_message_types() -> None:
    program = """
from google.cloud.datastore_v1.types import entity
from google.cloud import datastore_v1
print(datastore_v1.Entity is entity.Entity, datastore_v1.DatastoreClient.__name__)
"""
    assert printed(program) == "True DatastoreClient"


def test_a_package_loaded_before_is_kept() -> None:
    program = """
from google.cloud import datastore_v1
message_loading.load()
import google.cloud.datastore_v1
print(google.cloud.datastore_v1 is datastore_v1)
"""
    assert python(LOAD.replace("message_loading.load()", program)).stdout.strip() == "True"


def test_the_cloud_store_gets_a_channel_with_credentials(tmp_path: Path) -> None:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    text = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    ).decode()
    account = {
        "type": "service_account",
        "project_id": "project",
        "private_key_id": "1",
        "private_key": text,
        "client_email": "someone@example.org",
        "token_uri": "https://example.org/token",
    }
    (tmp_path / "account").write_text(json.dumps(account))
    program = "import main\nprint(type(main._cloud()).__module__)"
    found = printed(
        program,
        FLATTHREAD_DATA=str(tmp_path / "data"),
        GOOGLE_APPLICATION_CREDENTIALS=str(tmp_path / "account"),
    )
    assert found == "grpc._channel"


def test_missing_credentials_are_reported(tmp_path: Path) -> None:
    ended = run("import main\nmain._cloud()", FLATTHREAD_DATA=str(tmp_path), NO_GCE_CHECK="true")
    assert "Misconfigured: no credentials for Datastore:" in ended.stderr.replace(
        "comments.errors.", ""
    )
