"""Hooks of the site "demo" and what is posted there, for tests of sending.

What is posted here has its messages written and not sent: a test sends, when it says.
"""

from datetime import datetime, timedelta

from comments import (
    datastore,
    delivery,
    hooks,
    outbound,
    records,
    webhooks,
)
from comments import handlers as wiring
from tests import recounts, trees

START = trees.START
SECRET = webhooks.secret(bytes(32))


class Time:
    """The time of day, as a test moves it."""

    now = START + timedelta(hours=1)

    def __call__(self) -> datetime:
        return self.now


def register(name: str, url: str, client: outbound.Client) -> None:
    made = hooks.Registered(name, url, (SECRET,), tuple(webhooks.Type), START)
    hooks.add("demo", made, client)


def post(site: records.Site, text: str = "text") -> str:
    """Post, and have the messages written; the id that receivers are told."""
    row = trees.post(site, text)
    delivery.deliver(recounts.events(), now=START, handlers=wiring.HANDLERS)
    return f"msg_{row.id}_1"


def left() -> list[str]:
    query = datastore.Query("Message", keys_only=True)
    return [message.key.path[-1].name for message in datastore.fetch(query)]
