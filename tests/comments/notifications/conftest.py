"""Provide fixtures for mail tests: a service that sends mail and a reader who subscribes."""

import json

import pytest

from comments import app as apps
from comments.domain import records
from comments.store import connection
from tests.support.outside import mail_subscriber
from tests.support.outside.mail_server import Box
from tests.support.outside.mail_service import MailService


@pytest.fixture
def mailer(store: connection.Store, site: records.Site, box: Box) -> MailService:
    """A service that sends mail and has one comment, by Ann."""
    made = MailService(store, box.settings(), box)
    made.say("first", author="g:ann")
    made.deliver()
    return made


@pytest.fixture
def asker(open_store: connection.Store, site: records.Site, box: Box) -> mail_subscriber.Asker:
    settings = box.settings()
    client = apps.create_app(settings, open_store).test_client()
    made = mail_subscriber.Asker(client, open_store, settings, box)
    posted = client.post(
        "/api/v1/sites/demo/comments?thread=page",
        json={"name": "Mallory", "body": "Buy pills", "title": "Cheap pills"},
    )
    made.token = json.loads(posted.text)["token"]
    made.deliver()
    return made
