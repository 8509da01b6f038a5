"""Set up webhooks for the site "demo" and make posts; tests decide when to send messages.

Posting writes messages but does not send them.
"""

from datetime import datetime, timedelta

from comments.domain import records
from comments.events import dispatcher, safe_http, webhook_endpoints, webhooks
from comments.store import reads
from comments.upkeep import wiring
from tests.support.histories import counter_oracle
from tests.support.threads import sample_threads

START = sample_threads.START
SECRET = webhooks.secret(bytes(32))


class Time:
    """A clock that a test advances."""

    now = START + timedelta(hours=1)

    def __call__(self) -> datetime:
        return self.now


def register(name: str, url: str, client: safe_http.HttpClient) -> None:
    made = webhook_endpoints.Registered(name, url, (SECRET,), webhooks.PUBLIC_TYPES, START)
    webhook_endpoints.add("demo", made, client)


def post(site: records.Site, text: str = "text") -> str:
    """Post and write the messages; return the message id that the receivers get."""
    row = sample_threads.post(site, text)
    dispatcher.deliver(counter_oracle.events(), now=START, handlers=wiring.HANDLERS)
    return f"msg_{row.id}_1"


def left() -> list[str]:
    query = reads.Query("Message", keys_only=True)
    return [message.key.path[-1].name for message in reads.fetch(query)]
