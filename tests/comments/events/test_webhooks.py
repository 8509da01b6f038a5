"""Test the stable format, signatures and content of webhook messages and the receivers' answers."""

import json
import re
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from comments import errors
from comments.domain import records
from comments.domain.outcomes import End
from comments.events import safe_http, webhooks
from tests.conftest import ROOT
from tests.support import loopback_servers

NOW = datetime(2026, 1, 2, 3, 4, 5, 678901, UTC)
ID = "aaaqeayeaudaocajbifqydiob4"
EVENT = f"{ID}.2"
OLD, NEW = (webhooks.secret(bytes([n]) * 32) for n in (1, 2))
HOOK = webhooks.Hook("https://hooks.example/", (NEW,))
COMMENT = records.Comment(
    id=ID,
    site="demo",
    thread="page",
    sort_hash="AA",
    level=0,
    number=0,
    child_count=0,
    parent=None,
    reply_to=None,
    slug="slug",
    author=records.Author("Ann", "https://ann.example/", "canary@private.example", "g:canary"),
    body="*hello*",
    html="<p><em>hello</em></p>",
    status=records.Status.APPROVED,
    listed=True,
    revision=2,
    created=NOW,
    edited=None,
)
THREAD = records.Thread(
    records.ThreadName("demo", "page"),
    "A page",
    "https://site.example/",
    records.ThreadState.OPEN,
    1,
)
# Receivers parse this JSON.
GOLDEN = {
    "type": "comment.edited",
    "timestamp": "2026-01-02T03:04:05.678901Z",
    "data": {
        "site": "demo",
        "thread": "page",
        "title": "A page",
        "url": "https://site.example/",
        "comment": {
            "id": ID,
            "slug": "slug",
            "parent": None,
            "reply_to": None,
            "level": 0,
            "html": "<p><em>hello</em></p>",
            "author": {"name": "Ann", "website": "https://ann.example/", "kind": "guest"},
            "created": "2026-01-02T03:04:05.678901Z",
            "edited": None,
            "score": 0,
            "status": "approved",
            "revision": 2,
            "pinned": False,
        },
    },
}


@pytest.fixture(scope="module")
def is_genuine() -> Any:
    """The verification function from the documentation."""
    text = (ROOT / "docs" / "webhooks.md").read_text()
    (shown,) = re.findall(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    space = {}
    exec(shown, space)  # noqa: S102 - code from our own documentation
    return space["is_genuine"]


def signed(hook: Any = HOOK, payload: bytes = b"{}", event: Any = EVENT) -> Any:
    return webhooks.headers(hook, event, payload, now=NOW)


# --- Messages --------------------


def test_the_format_of_a_message_is_stable() -> None:
    made = webhooks.body(webhooks.Type.EDITED, NOW, COMMENT, THREAD)
    assert json.loads(made) == GOLDEN
    assert made.startswith(
        b'{"type":"comment.edited","timestamp":"2026-01-02T03:04:05.678901Z","data":{"site"'
    )


def test_a_message_contains_no_personal_data() -> None:
    assert b"canary" not in webhooks.body(webhooks.Type.POSTED, NOW, COMMENT, THREAD)


def test_the_message_of_a_retracted_comment_has_no_content() -> None:
    gone = msgspec.structs.replace(COMMENT, status=records.Status.RETRACTED)
    made = webhooks.body(webhooks.Type.POSTED, NOW, gone, None)
    assert b"hello" not in made
    assert b"Ann" not in made
    assert json.loads(made)["data"]["comment"]["status"] == "removed"


def test_the_signature_of_a_message_is_stable() -> None:
    assert signed() == {
        "Content-Type": "application/json",
        "User-Agent": "Flatthread",
        "webhook-id": f"msg_{ID}_2",
        "webhook-timestamp": "1767323045",
        "webhook-signature": "v1,8ajqe9PLMqihBzCl3eliCOQBGZ1eqduH/E7oKvdA4x8=",
    }


def test_the_standards_own_example_has_the_expected_signature() -> None:
    """The example is the Standard Webhooks libraries' test vector."""
    key = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
    text = b'msg_p5jXN8AQM9LWM0D4loKWxJek.1614265330.{"test": 2432232314}'
    assert webhooks._signature(key, text) == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


@given(st.binary(max_size=200), st.binary(max_size=200))
def test_the_documented_check_accepts_only_what_was_signed(
    is_genuine: Any, payload: Any, other: Any
) -> None:
    found, now = signed(payload=payload), NOW.timestamp()
    assert is_genuine(NEW, found, payload, now)
    assert not is_genuine(OLD, found, payload, now)
    assert is_genuine(NEW, found, other, now) == (payload == other)
    assert not is_genuine(NEW, found | {"webhook-id": "msg_x"}, payload, now)
    moved = {"webhook-timestamp": str(int(now) + 1)}
    assert not is_genuine(NEW, found | moved, payload, now)


def test_an_old_message_is_not_genuine(is_genuine: Any) -> None:
    found, later = signed(), (NOW + timedelta(minutes=6)).timestamp()
    assert not is_genuine(NEW, found, b"{}", later)


def test_both_secrets_sign_during_a_rotation(is_genuine: Any) -> None:
    found, now = signed(webhooks.Hook(HOOK.url, (NEW, OLD))), NOW.timestamp()
    assert is_genuine(NEW, found, b"{}", now)
    assert is_genuine(OLD, found, b"{}", now)


def test_an_event_sent_again_has_the_same_id_and_a_new_timestamp() -> None:
    later = webhooks.headers(HOOK, EVENT, b"{}", now=NOW + timedelta(hours=1))
    assert later["webhook-id"] == signed()["webhook-id"]
    assert later["webhook-signature"] != signed()["webhook-signature"]
    assert signed(event=f"{ID}.3")["webhook-id"] != signed()["webhook-id"]


@pytest.mark.parametrize(
    "secrets",
    [
        (),
        ("",),
        (NEW, OLD, NEW),
        (NEW.removeprefix("whsec_"),),
        ("whsec_",),
        ("whsec_AAAA",),
        (f"{NEW}\n",),
        ("whsec_é",),
        (NEW, "whsec_!"),
        ("whsec_" + "A" * 200,),
    ],
)
def test_a_malformed_secret_is_refused(secrets: tuple[object, ...] | tuple[str, ...]) -> None:
    with pytest.raises(errors.BadInput) as caught:
        webhooks.Hook(HOOK.url, secrets)  # type: ignore[arg-type]
    assert caught.value.field == "secrets"
    assert "AAAA" not in caught.value.message


@pytest.mark.parametrize("size", [0, 23, 65])
def test_a_key_of_another_length_is_refused(size: int) -> None:
    with pytest.raises(errors.BadInput):
        webhooks.secret(bytes(size))


# --- Deliveries --------------------


@pytest.mark.parametrize(
    ("status", "end"),
    [
        (200, End.DELIVERED),
        (204, End.DELIVERED),
        (299, End.DELIVERED),
        (302, End.RETRY),
        (400, End.RETRY),
        (404, End.RETRY),
        (410, End.GIVE_UP),
        (429, End.RETRY),
        (500, End.RETRY),
        (503, End.RETRY),
    ],
)
def test_the_meaning_of_each_status(status: int, end: Any, is_genuine: Any) -> None:
    payload = webhooks.body(webhooks.Type.POSTED, NOW, COMMENT, THREAD)
    with loopback_servers.receiver(certificate=loopback_servers.NAME) as told:
        told.status, told.answer = status, b""
        told.headers = {"Location": "http://127.0.0.1/"}
        hook = webhooks.Hook(f"https://{loopback_servers.NAME}:{told.port}/in", (NEW,))
        found = webhooks.send(loopback_servers.client(told.port), hook, EVENT, payload, now=NOW)
    (heard,) = told.heard
    assert (found.end, found.reason, found.retry_after) == (end, f"answered {status}", None)
    assert (heard.method, heard.path, heard.body) == ("POST", "/in", payload)
    assert is_genuine(NEW, heard.headers, heard.body, NOW.timestamp())


@pytest.mark.parametrize(
    ("asked", "seconds"),
    [
        ("120", 120),
        ("999999999999", 86_400),
        ("0", 0),
        ("-1", None),
        ("1.5", None),
        ("Wed, 21 Oct 2026 07:28:00 GMT", None),
    ],
)
def test_retry_after_is_respected_within_limits(asked: str, seconds: int | None) -> None:
    with loopback_servers.receiver() as told:
        told.status, told.headers = 503, {"Retry-After": asked}
        hook = webhooks.Hook(f"http://{loopback_servers.NAME}:{told.port}/", (NEW,))
        found = webhooks.send(loopback_servers.client(told.port), hook, EVENT, b"{}", now=NOW)
    assert (found.end, found.retry_after) == (End.RETRY, seconds)


def test_a_peer_that_does_not_answer_is_retried_later() -> None:
    def hang_up(connection: Any, _over: Any) -> None:
        connection.recv(1)

    with loopback_servers.peer(hang_up) as port:
        hook = webhooks.Hook(f"http://{loopback_servers.NAME}:{port}/", (NEW,))
        found = webhooks.send(loopback_servers.client(port), hook, EVENT, b"{}", now=NOW)
    assert found.end is End.RETRY


def test_an_internal_address_is_given_up() -> None:
    client = safe_http.HttpClient(resolver=lambda _host: ["10.0.0.1"])
    found = webhooks.send(client, HOOK, EVENT, b"{}", now=NOW)
    assert (found.end, "Internet" in found.reason) == (End.GIVE_UP, True)
