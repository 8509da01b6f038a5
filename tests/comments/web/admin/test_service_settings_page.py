"""Owners of the service see its settings with their sources."""

import dataclasses
from pathlib import Path

from comments import app as apps
from comments import config
from comments.domain import records
from comments.store import connection
from tests.support.html import html_validator
from tests.support.people import account_holders
from tests.support.people.account_holders import OWNER, SECRET
from tests.support.people.console_browser import Desk

SERVICE = "/admin/service"


def test_each_setting_is_shown_with_its_source_and_no_secret_at_all(
    store: connection.Store, site: records.Site, tmp_path: Path
) -> None:
    file = tmp_path / "settings"
    file.write_text("EDIT_WINDOW=60\nDEADLINE=30\nTASKS_SECRET=a-secret-of-the-file\n")
    given = {
        "FLATTHREAD_CONFIG": str(file), "SECRET": SECRET, "DEADLINE": "25",
        "MAIL_FROM": "a@b.example", "PUBLIC_URL": "https://c.example",
        "SMTP_URL": "smtps://user:pass-word@mail.example:465",
    }  # fmt: skip
    settings = config.load(given)
    shown = {each.name: (each.value, each.source) for each in settings.listed}
    assert set(shown) == config.NAMES
    assert shown["EDIT_WINDOW"] == ("60", "file")
    assert shown["DEADLINE"] == ("25", "environment")
    assert shown["MAX_BODY"] == ("65536", "default")
    assert shown["SMTP_URL"] == (None, "environment")
    assert shown["METRICS_TOKEN"] == (None, "default")
    account_holders.account("ann", OWNER)
    owner = Desk(apps.create_app(dataclasses.replace(settings, public_url=""), store), "ann")
    page = owner.client.get(SERVICE).text
    for secret in ("pass-word", "a-secret-of-the-file", SECRET, "user:"):
        assert secret not in page
    assert "<code>flatthread secret renew</code>" in page
    assert html_validator.complaints([page]) == [[]]
