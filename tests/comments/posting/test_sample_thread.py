"""Test the sample thread of a new service."""

import dataclasses
from datetime import UTC, datetime

from flask.testing import FlaskClient

from comments import config
from comments.domain import records
from comments.posting import sample_thread
from comments.store import connection


def test_the_sample_thread_is_nested_and_readers_see_all_of_it(
    open_store: connection.Store, site: records.Site, settings: config.Settings, client: FlaskClient
) -> None:
    strict = dataclasses.replace(
        settings,
        proof_of_work=1000,
        form_seconds=10,
        posts_per_network=1,
        posts_per_author=1,
        posts_per_thread=1,
        same_texts=1,
    )
    with open_store.context():
        sample_thread.post(site, strict, now=datetime.now(UTC))
    page = client.get("/api/v1/sites/demo/comments?thread=demo").get_json()
    assert page["total"] == len(sample_thread._COMMENTS)
    assert [each["level"] for each in page["comments"]] == [0, 1, 2, 0]
    assert "<li>the form has buttons for them,</li>" in page["comments"][-1]["html"]
