"""Test where settings come from and which values are refused."""

import base64
import contextlib
import dataclasses
import grp
import sqlite3
import subprocess
import sys
from datetime import time
from pathlib import Path
from typing import Any

import pytest

from comments import config, errors
from comments.domain.crypto import secret_rotation
from comments.domain.ids import sorthash

ROOT = Path(__file__).parents[2]
SECRET = "0123456789abcdef"
GIVEN = {
    "SECRET": SECRET,
    "MAIL_FROM": "comments@service.example",
    "PUBLIC_URL": "https://service.example",
}

# Each setting's name, field, default, minimum and maximum.
NUMBERS = [
    ("DEADLINE", "deadline", 20, 1, 300),
    ("RPC_TIMEOUT", "rpc_timeout", 10, 1, 60),
    ("MAX_BODY", "max_body", 65_536, 1_024, 1_048_576),
    ("EDIT_WINDOW", "edit_window", 900, 0, 604_800),
    ("GUEST_TOKEN_SECONDS", "guest_token_seconds", 86_400, 60, 86_400),
    ("PROOF_OF_WORK", "proof_of_work", 50_000, 0, 2_000_000),
    ("FORM_SECONDS", "form_seconds", 3, 0, 60),
    ("POSTS_PER_NETWORK", "posts_per_network", 20, 0, 10_000),
    ("POSTS_PER_AUTHOR", "posts_per_author", 10, 0, 10_000),
    ("POSTS_PER_THREAD", "posts_per_thread", 300, 0, 10_000),
    ("PREVIEWS_PER_NETWORK", "previews_per_network", 30, 0, 10_000),
    ("SAME_TEXTS", "same_texts", 3, 0, 10_000),
    ("AUDIT_READS", "audit_reads", 10_000, 0, 10_000_000),
    ("BACKUP_KEEP", "backup_keep", 7, 1, 1000),
]
SCHEME_NUMBERS = [("SORT_HASH_WIDTH", "width", 2, 1, 8), ("SORT_HASH_LEVELS", "levels", 8, 1, 100)]


def made_by(*statements: str) -> bytes:
    """Return a database that some other program has written."""
    with contextlib.closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement)
        return connection.serialize()


def test_without_any_setting_the_embedded_engine_and_these_defaults_apply() -> None:
    settings = config.load({"SECRET": SECRET})
    rules = {field: default for _, field, default, *_ in NUMBERS}
    assert settings == config.Settings(secret=SECRET, **rules)  # type: ignore[arg-type]
    assert settings.scheme == sorthash.Scheme()
    assert settings.where == f"the embedded engine in {Path.cwd()}/data"


@pytest.mark.parametrize(("name", "field", "default", "low", "high"), NUMBERS)
def test_numbers_have_a_default_and_are_accepted_up_to_their_limits(
    name: str, field: str, default: int, low: int, high: int
) -> None:
    assert getattr(config.load(GIVEN), field) == default
    assert getattr(config.load({**GIVEN, name: ""}), field) == default
    for value in (low, high):
        assert getattr(config.load({**GIVEN, name: str(value)}), field) == value


def test_the_audit_is_off_where_reads_are_billed_unless_it_is_set() -> None:
    cloud = {**GIVEN, "DATASTORE": "cloud"}
    assert config.load(cloud).audit_reads == 0
    assert config.load({**GIVEN, "DATASTORE_EMULATOR_HOST": "h:1"}).audit_reads == 0
    assert config.load({**cloud, "AUDIT_READS": "500"}).audit_reads == 500


@pytest.mark.parametrize(("name", "field", "default", "low", "high"), SCHEME_NUMBERS)
def test_the_scheme_is_accepted_up_to_its_limits(
    name: str, field: str, default: int, low: int, high: int
) -> None:
    assert getattr(config.load(GIVEN).scheme, field) == default
    for value in (low, high):
        assert getattr(config.load({**GIVEN, name: str(value)}).scheme, field) == value


@pytest.mark.parametrize(("name", "field", "default", "low", "high"), [*NUMBERS, *SCHEME_NUMBERS])
def test_numbers_beyond_their_limits_are_refused_by_name(
    name: Any, field: Any, default: Any, low: Any, high: Any
) -> None:
    for text in (str(low - 1), str(high + 1), "-1", "1.5", "1e3", "ten", " 20", "٢٠", "9" * 5_000):
        with pytest.raises(errors.Misconfigured, match=f"^{name} must be a whole number"):
            config.load({**GIVEN, name: text})


def test_the_digits_of_the_scheme_are_read() -> None:
    settings = config.load({**GIVEN, "SORT_HASH_DIGITS": "0123456789", "SORT_HASH_LEVELS": "3"})
    assert settings.scheme == sorthash.Scheme("0123456789", 2, 3)


def test_digits_that_do_not_sort_are_refused_by_name() -> None:
    with pytest.raises(errors.Misconfigured, match=r"^SORT_HASH_\*: digits"):
        config.load({**GIVEN, "SORT_HASH_DIGITS": "BA"})


@pytest.mark.parametrize(
    ("environ", "kind", "where"),
    [
        ({}, "embedded", f"the embedded engine in {Path.cwd()}/data"),
        ({"FLATTHREAD_DATA": "/srv/x"}, "embedded", "the embedded engine in /srv/x"),
        ({"DATASTORE": "embedded", "GAE_ENV": "standard"}, "embedded", "embedded engine"),
        ({"GAE_ENV": "standard", "GOOGLE_CLOUD_PROJECT": "p1"}, "cloud", "Datastore, project p1"),
        ({"DATASTORE": "cloud"}, "cloud", "Datastore, project flatthread"),
        ({"DATASTORE_EMULATOR_HOST": "h:1"}, "emulator", "the emulator at h:1"),
        ({"DATASTORE_EMULATOR_HOST": "h:1", "DATASTORE": "cloud"}, "emulator", "at h:1"),
        ({"DATASTORE_EMULATOR_HOST": "", "DATASTORE": ""}, "embedded", "embedded engine"),
    ],
)
def test_the_environment_selects_the_store(
    environ: dict[str, object] | dict[str, str], kind: str, where: str
) -> None:
    settings = config.load({**GIVEN, **environ})  # type: ignore[dict-item]
    assert settings.datastore == kind
    assert where in settings.where


def test_an_unknown_store_is_refused() -> None:
    with pytest.raises(
        errors.Misconfigured, match=r"^DATASTORE must be 'cloud', 'embedded' or unset"
    ):
        config.load({**GIVEN, "DATASTORE": "sqlite"})


def test_the_projects_datastore_setting_overrides_the_clouds() -> None:
    both = {**GIVEN, "GOOGLE_CLOUD_PROJECT": "cloud", "DATASTORE_PROJECT_ID": "own"}
    assert config.load(both).project == "own"
    assert config.load({**both, "DATASTORE_PROJECT_ID": ""}).project == "cloud"
    assert config.load(GIVEN).project == "flatthread"


def test_texts_are_read_unchanged() -> None:
    settings = config.load(
        {
            **GIVEN,
            "DATASTORE_DATABASE": "db",
            "DATASTORE_NAMESPACE": "ns",
            "DATASTORE_EMULATOR_HOST": "localhost:8081",
            "FLATTHREAD_DATA": "/srv/data",
        }
    )
    assert (settings.database, settings.namespace) == ("db", "ns")
    assert settings.emulator_host == "localhost:8081"
    assert settings.data_dir == Path("/srv/data")


def test_without_an_argument_the_environment_of_the_process_is_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SECRET", "from the process's own environment")
    assert config.load().secret == "from the process's own environment"


# For each setting, a value other than the default and the field that it changes.
CHANGES = {
    "DATASTORE": ("cloud", "datastore"),
    "DATASTORE_DATABASE": ("db", "database"),
    "AUDIT_READS": ("5", "audit_reads"),
    "BACKUP_AT": ("23:59", "backup_at"),
    "BACKUP_DIR": ("/srv/backups", "backup_dir"),
    "BACKUP_KEEP": ("3", "backup_keep"),
    "DATASTORE_EMULATOR_HOST": ("h:1", "emulator_host"),
    "DATASTORE_NAMESPACE": ("ns", "namespace"),
    "DATASTORE_PROJECT_ID": ("own", "project"),
    "FLATTHREAD_DATA": ("/srv/data", "data_dir"),
    "DATA_GROUP": (grp.getgrgid(0).gr_name, "data_group"),
    "DEADLINE": ("3", "deadline"),
    "EDIT_WINDOW": ("3", "edit_window"),
    "FORM_SECONDS": ("5", "form_seconds"),
    "GOOGLE_CLOUD_PROJECT": ("cloud", "project"),
    "GUEST_TOKEN_SECONDS": ("300", "guest_token_seconds"),
    "HOSTS": ("www.blog.example, Other.Example.", "hosts"),
    "MAILS_PER_DAY": ("3", "mails_per_day"),
    "MAIL_FROM": ("other@service.example", "mail_from"),
    "MAX_BODY": ("2048", "max_body"),
    "POSTS_PER_AUTHOR": ("5", "posts_per_author"),
    "POSTS_PER_NETWORK": ("5", "posts_per_network"),
    "POSTS_PER_THREAD": ("5", "posts_per_thread"),
    "PREVIEWS_PER_NETWORK": ("5", "previews_per_network"),
    "PROOF_OF_WORK": ("5", "proof_of_work"),
    "TRUSTED_PROXIES": ("1", "trusted_proxies"),
    "PUBLIC_URL": ("https://other.example/comments", "public_url"),
    "RPC_TIMEOUT": ("3", "rpc_timeout"),
    "SAME_TEXTS": ("5", "same_texts"),
    "SECRET": ("another sixteen or more", "secret"),
    "SMTP_CA_FILE": ("/srv/authority.pem", "smtp_ca_file"),
    "SMTP_URL": ("smtps://mail.example", "smtp"),
    "SORT_HASH_DIGITS": ("0123456789", "scheme"),
    "SORT_HASH_LEVELS": ("3", "scheme"),
    "SORT_HASH_WIDTH": ("3", "scheme"),
    "TASKS_QUEUE": ("projects/p/locations/l/queues/q", "tasks_queue"),
    "METRICS_TOKEN": ("a token of sixteen", "metrics_token"),
    "TASKS_SECRET": ("yet another sixteen", "tasks_secret"),
    "FOLLOWS_PER_NETWORK": ("7", "follows_per_network"),
    "VOTERS_PER_NETWORK": ("3", "voters_per_network"),
}


def test_a_time_of_day_is_read_or_refused_by_name() -> None:
    assert config.load(GIVEN).backup_at == time(3)
    assert config.load({**GIVEN, "BACKUP_AT": "00:30"}).backup_at == time(0, 30)
    for text in ("24:00", "3:00", "03:60", "03:00:00", "noon", "03:00 ", "\u06603:00"):
        with pytest.raises(errors.Misconfigured, match=r"BACKUP_AT must be a time such as 03:00"):
            config.load({**GIVEN, "BACKUP_AT": text})


def test_a_folder_for_backups_that_cannot_be_used_causes_a_warning(tmp_path: Path) -> None:
    given = {**GIVEN, "SECRET": "x" * 32, "BACKUP_DIR": str(tmp_path)}
    assert config.load(given).advice == ()
    (said,) = config.load({**given, "BACKUP_DIR": str(tmp_path / "unmounted")}).advice
    assert "unmounted is not a folder in which this service can write" in said
    (said,) = config.load({**given, "DATASTORE": "cloud"}).advice
    assert said.startswith("BACKUP_DIR has no effect")


@pytest.mark.parametrize("kind", ["embedded", "cloud"])
def test_a_secret_knows_the_one_it_replaced(tmp_path: Path, kind: str) -> None:
    given = {"DATASTORE": kind, "FLATTHREAD_DATA": str(tmp_path)}
    assert secret_rotation.accepted_secrets(config.load({**given, "SECRET": SECRET}).secret) == (
        SECRET,
    )
    both = config.load({**given, "SECRET": SECRET, "SECRET_OLD": "before"})
    assert secret_rotation.accepted_secrets(both.secret) == (SECRET, "before")
    same = config.load({**given, "SECRET": SECRET, "SECRET_OLD": SECRET})
    assert secret_rotation.accepted_secrets(same.secret) == (SECRET,)
    assert "before" not in repr(both)
    assert SECRET not in repr(both)


def test_a_generated_secret_may_replace_one(tmp_path: Path) -> None:
    given = {"FLATTHREAD_DATA": str(tmp_path), "SECRET_OLD": "before"}
    made, old = secret_rotation.accepted_secrets(config.load(given).secret)
    assert old == "before"
    assert len(base64.urlsafe_b64decode(f"{made}=")) == 32
    assert config.load(given).advice == ()


@pytest.mark.parametrize("length", [1, 15, 16, 31])
def test_a_short_secret_is_accepted_with_a_warning(length: int) -> None:
    (said,) = config.load({**GIVEN, "SECRET": "x" * length}).advice
    assert f"SECRET has {length} characters" in said
    assert "x" * length not in said
    assert config.load({**GIVEN, "SECRET": "x" * 32}).advice == ()


@pytest.mark.parametrize("given", ["a b", "https://x.example", "x.example:80", "*", "ü.example"])
def test_a_further_host_is_a_name_without_a_port(given: str) -> None:
    with pytest.raises(errors.Misconfigured, match=r"^HOSTS must be host names without ports"):
        config.load({**GIVEN, "HOSTS": f"x.example,{given}"})


def test_further_hosts_are_read_as_browsers_send_them() -> None:
    given = config.load({**GIVEN, "HOSTS": " WWW.x.example ,, y.example.,[::1],localhost"})
    assert given.hosts == ("www.x.example", "y.example", "[::1]", "localhost")


@pytest.mark.parametrize(("name", "value", "field"), [(n, *c) for n, c in CHANGES.items()])
def test_every_setting_changes_its_field_from_the_environment_and_from_a_file(
    tmp_path: Path, name: Any, value: Any, field: Any
) -> None:
    (tmp_path / "settings").write_text(
        "".join(f"{n}={v}\n" for n, v in {**GIVEN, name: value}.items())
    )
    from_file = config.load({"FLATTHREAD_CONFIG": str(tmp_path / "settings")})
    assert from_file == config.load({**GIVEN, name: value})
    assert getattr(from_file, field) != getattr(config.load(GIVEN), field)


def test_there_are_no_other_settings_and_no_other_fields() -> None:
    # Secrets compare only by their text, so SECRET_OLD has a separate test.
    assert {*CHANGES, "SECRET_OLD"} == config.NAMES
    fields = {field.name for field in dataclasses.fields(config.Settings)}
    # Only App Engine and Cloud Run set the fields below, and `listed` shows all settings.
    assert {field for _, field in CHANGES.values()} == fields - {
        "listed",
        "on_app_engine",
        "on_cloud_run",
        "service",
    }


class TestFile:
    @pytest.fixture
    def file(self, tmp_path: Path) -> Path:
        return tmp_path / "flatthread.env"

    def test_a_file_provides_what_the_environment_does_not(self, file: Any) -> None:
        file.write_text(f"# ours\n\n SECRET = {SECRET} \nMAX_BODY=2048\nDEADLINE=5\n")
        settings = config.load({"FLATTHREAD_CONFIG": str(file), "DEADLINE": "7"})
        assert settings.secret == SECRET
        assert settings.max_body == 2048
        assert settings.deadline == 7

    def test_a_value_may_contain_an_equals_sign(self, file: Any) -> None:
        file.write_text(f"SECRET={SECRET}==\n")
        assert config.load({"FLATTHREAD_CONFIG": str(file)}).secret == f"{SECRET}=="

    def test_a_missing_file_is_refused_by_name(self, file: Any) -> None:
        with pytest.raises(errors.Misconfigured, match=r"^FLATTHREAD_CONFIG=.*cannot be read"):
            config.load({**GIVEN, "FLATTHREAD_CONFIG": str(file)})

    def test_a_file_that_is_not_text_is_refused_by_name(self, file: Any) -> None:
        file.write_bytes(b"\xff\xfe")
        with pytest.raises(errors.Misconfigured, match=r"^FLATTHREAD_CONFIG=.*cannot be read"):
            config.load({**GIVEN, "FLATTHREAD_CONFIG": str(file)})

    def test_a_malformed_line_is_refused_with_its_number(self, file: Any) -> None:
        file.write_text("MAX_BODY=2048\nDEADLINE\n")
        with pytest.raises(errors.Misconfigured, match=r":2: expected NAME=value$"):
            config.load({**GIVEN, "FLATTHREAD_CONFIG": str(file)})

    def test_an_unknown_setting_is_refused_with_its_line(self, file: Any) -> None:
        file.write_text("DEADLINE=5\nDEADLIEN=6\n")
        with pytest.raises(errors.Misconfigured, match=r":2: no such setting: DEADLIEN$"):
            config.load({**GIVEN, "FLATTHREAD_CONFIG": str(file)})


@pytest.mark.parametrize("more", [{}, {"FLATTHREAD_DATA": ""}])
def test_the_former_name_of_the_data_folder_begins_no_new_store(
    tmp_path: Path, more: dict[str, str]
) -> None:
    with pytest.raises(errors.Misconfigured, match="set FLATTHREAD_DATA instead"):
        config.load({"DATA_DIR": str(tmp_path), **more})
    assert list(tmp_path.iterdir()) == []
    assert config.load({"DATA_DIR": "elsewhere", "FLATTHREAD_DATA": str(tmp_path)}).secret


class TestSecret:
    @pytest.mark.parametrize(
        "environ",
        [{"DATASTORE": "cloud"}, {"GAE_ENV": "standard"}, {"DATASTORE_EMULATOR_HOST": "h:1"}],
    )
    def test_a_deployment_without_a_secret_is_refused(self, environ: dict[str, str]) -> None:
        with pytest.raises(errors.Misconfigured, match=r"^SECRET is not set"):
            config.load(environ)

    def test_one_machine_generates_its_secret_once_beside_the_data(self, tmp_path: Path) -> None:
        folder = tmp_path / "deep" / "data"
        made = config.load({"FLATTHREAD_DATA": str(folder)}).secret
        assert len(made) >= 32
        assert config.load({"FLATTHREAD_DATA": str(folder)}).secret == made
        assert {file.name for file in folder.iterdir()} == {"secret", config.STARTING}
        assert (folder / "secret").stat().st_mode & 0o777 == 0o600

    @pytest.mark.parametrize(
        "content",
        [
            None,
            b"",
            made_by("CREATE TABLE t (x)"),
            made_by("CREATE TABLE t (x)", "DROP TABLE t", "VACUUM"),
        ],
        ids=["missing", "no bytes", "no store", "no tables"],
    )
    def test_a_secret_without_its_data_is_refused(
        self, tmp_path: Path, content: bytes | None
    ) -> None:
        given = {"FLATTHREAD_DATA": str(tmp_path)}
        config.load(given)
        (tmp_path / config.STARTING).unlink()  # As the embedded engine does when it is open
        if content is not None:
            (tmp_path / "flatthread.db").write_bytes(content)
        with pytest.raises(
            errors.Misconfigured, match=r"flatthread\.db is missing or empty.*delete"
        ):
            config.load(given)
        config.load(given, is_restoring=True)
        (tmp_path / "flatthread.db").write_bytes(b"data")
        config.load(given)

    def test_data_without_its_secret_is_refused(self, tmp_path: Path) -> None:
        given = {"FLATTHREAD_DATA": str(tmp_path)}
        (tmp_path / "flatthread.db").write_bytes(b"data")
        with pytest.raises(errors.Misconfigured, match=r"secret is missing.*set SECRET"):
            config.load(given)
        assert not (tmp_path / "secret").exists()
        assert config.load({**given, "SECRET": SECRET}).secret == SECRET
        config.load({**given, "SECRET_OLD": SECRET})

    def test_a_secret_is_not_generated_unless_wanted(self, tmp_path: Path) -> None:
        given = {"FLATTHREAD_DATA": str(tmp_path / "data")}
        assert config.load(given, makes_secret=False).secret == ""
        assert not (tmp_path / "data").exists()
        assert config.load({**given, "SECRET": SECRET}, makes_secret=False).secret == SECRET
        kept = config.load(given).secret
        assert config.load(given, makes_secret=False).secret == kept != ""

    def test_two_machines_generate_different_secrets(self, tmp_path: Path) -> None:
        one, other = (
            config.load({"FLATTHREAD_DATA": str(tmp_path / name)}).secret for name in "ab"
        )
        assert one != other

    @pytest.mark.slow
    def test_concurrently_starting_processes_agree_on_one_secret(self, tmp_path: Path) -> None:
        folder = tmp_path / "data"
        code = (
            "import sys; from comments import config; sys.stdin.read(1); "
            "print(config.load({'FLATTHREAD_DATA': sys.argv[1]}).secret)"
        )
        started = [
            subprocess.Popen(
                [sys.executable, "-c", code, str(folder)],
                cwd=ROOT,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            for _ in range(6)
        ]
        for process in started:
            process.stdin.write("g")
            process.stdin.flush()
        secrets = {process.communicate(timeout=60)[0].strip() for process in started}
        assert secrets == {(folder / "secret").read_text()}
        assert {file.name for file in folder.iterdir()} == {"secret", config.STARTING}

    @pytest.mark.parametrize("kept", [b"", b"short", b"\xff" * 32])
    def test_a_damaged_secret_is_refused_and_not_overwritten(
        self, tmp_path: Path, kept: bytes
    ) -> None:
        (tmp_path / "secret").write_bytes(kept)
        (tmp_path / "flatthread.db").write_bytes(b"data")
        with pytest.raises(errors.Misconfigured, match="secret is damaged"):
            config.load({"FLATTHREAD_DATA": str(tmp_path)})
        assert (tmp_path / "secret").read_bytes() == kept

    def test_a_data_folder_that_cannot_be_created_is_refused_by_name(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("")
        with pytest.raises(
            errors.Misconfigured, match="file/data/secret cannot be read or created"
        ):
            config.load({"FLATTHREAD_DATA": str(tmp_path / "file" / "data")})
