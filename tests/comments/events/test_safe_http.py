"""The client refuses unsafe URLs that people enter; its requests to all other URLs are safe."""

import ast
import functools
import ipaddress
import itertools
import socket
import ssl
import threading
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comments import errors
from comments.events import safe_http
from tests.conftest import ROOT
from tests.support import loopback_servers

SHORT = safe_http.RequestLimits(connect=0.5, total=0.5, answer=1_000)  # For a resolver that hangs
CONTEXT = ssl.create_default_context()
LONG = safe_http.RequestLimits(connect=60.0, total=60.0, answer=1_000)
PUBLIC = "93.184.216.34"


def to(address: str) -> Any:
    """Return a client that resolves every name to this address and allows only public addresses."""
    return safe_http.HttpClient(LONG, resolver=lambda _host: [address], context=CONTEXT)


REFUSED = [
    "",
    "hooks.example",
    "//hooks.example/",
    "http://hooks.example/",
    "ftp://hooks.example/",
    "file:///etc/passwd",
    "gopher://hooks.example:443/",
    "javascript:alert(1)",
    "https://",
    "https:///a",
    "https://hooks.example:25/",
    "https://hooks.example:22/",
    "https://hooks.example:80/",
    "https://hooks.example:0/",
    "https://hooks.example:99999/",
    "https://hooks.example:-1/",
    "https://hooks.example:x/",
    "https://user@hooks.example/",
    "https://user:word@hooks.example/",
    "https://@hooks.example/",
    "https://hooks.example@127.0.0.1/",
    "https://hooks.example#@127.0.0.1/",
    "https://hooks.example\\@127.0.0.1/",
    "https://hooks.example/a b",
    "https://hooks.example/\r\nHost: internal",
    "https://hooks.exa\nmple/",
    "https://hooks.exa\tmple/",
    " https://hooks.example/",
    "https://hooks.example/\x00",
    "https://hooks.example/\x7f",
    "https://hooks.example/\u2028",
    "https://hooks.example/é",
    "https://hooks.example/?é",
    "https://hooks.example/#a",
    "https://hooks.example./",
    "https://.hooks.example/",
    "https://hooks..example/",
    "https://-hooks.example/",
    "https://hooks_.example/",
    "https://hooks.example%2f/",
    "https://%31%32%37.0.0.1/",
    f"https://{'a' * 64}.example/",
    f"https://{'a.' * 130}example/",
    f"https://hooks.example/{'a' * 2_000}",
    # Some parsers interpret these hosts as addresses in our own network.
    "https://localhost/",
    "https://metadata/",
    "https://127.0.0.1/",
    "https://127.1/",
    "https://0/",
    "https://0x7f.1/",
    "https://0x7f000001/",
    "https://2130706433/",
    "https://0177.0.0.1/",
    "https://127.0.0.1./",
    "https://1.2.3.0x/",
    f"https://{PUBLIC}/",
    "https://[::1]/",
    "https://[::ffff:127.0.0.1]/",
    "https://[::ffff:169.254.169.254]/",
    "https://[fe80::1%25eth0]/",
    "https://[::ffff:7f00:1]/",
    "https://[64:ff9b::7f00:1]/",
    "https://[2002:7f00:1::]/",
    "https://192.0.0.8/",
    "https://169.254.169.254/latest/meta-data/",
    "https://2852039166/",
    "https://0251.0376.0251.0376/",
    "https://0xa9fea9fe/",
    "https://127.0.0.1:8443/",
    "https://127.0.0.1%00.hooks.example/",
    "https://[v1.x]/",
    "https://[::1/",
    "https://①②⑦.⓪.⓪.①/",
    "https://127。0。0。1/",
]


@pytest.mark.parametrize("url", REFUSED)
def test_a_url_that_is_not_plainly_on_the_internet_is_refused(url: str) -> None:
    asked = []
    client = safe_http.HttpClient(LONG, resolver=asked.append, context=CONTEXT)  # type: ignore[arg-type]
    for verb in (client.check, client.vet, lambda url: client.send("POST", url)):
        with pytest.raises(errors.UnsafeAddress) as caught:
            verb(url)
        assert caught.value.field == "url"
    assert asked == []


@pytest.mark.parametrize(
    ("url", "host", "authority", "path"),
    [
        ("https://hooks.example", "hooks.example", "hooks.example", "/"),
        ("https://HOOKS.Example:443/a?b=c", "hooks.example", "hooks.example", "/a?b=c"),
        ("https://hooks.example:8443/a%0d%0a", "hooks.example", "hooks.example:8443", "/a%0d%0a"),
        ("HTTPS://hooks.example/", "hooks.example", "hooks.example", "/"),
        ("https://bücher.example/", "xn--bcher-kva.example", "xn--bcher-kva.example", "/"),
    ],
)
def test_a_plain_url_is_accepted(url: str, host: str, authority: str, path: str) -> None:
    found = safe_http.HttpClient(context=CONTEXT).check(url)
    assert (found.host, found.authority, found.path) == (host, authority, path)
    assert found.is_secure


@given(st.text() | st.from_regex(r"https?://[!-~]{0,30}", fullmatch=True))
def test_any_text_is_accepted_or_refused(url: Any) -> None:
    try:
        found = safe_http.HttpClient(context=CONTEXT).check(url)
    except errors.UnsafeAddress:
        return
    assert found.is_secure
    assert found.port in safe_http.PORTS
    assert "." in found.host
    assert not found.host.replace(".", "").isdecimal()
    assert set(f"{found.host}{found.path}").isdisjoint(map(chr, [*range(33), 127]))


INSIDE = [
    "0.0.0.0",  # noqa: S104
    "10.0.0.1",
    "100.64.0.1",
    "100.100.100.200",
    "127.0.0.1",
    "127.255.255.254",
    "168.63.129.16",
    "169.254.169.254",
    "172.16.0.1",
    "192.0.0.8",
    "192.0.0.192",
    "192.0.2.1",
    "192.88.99.1",
    "192.168.1.1",
    "198.18.0.1",
    "198.51.100.1",
    "203.0.113.1",
    "224.0.0.1",
    "224.0.1.1",
    "233.252.0.1",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::127.0.0.1",
    "::ffff:127.0.0.1",
    "::ffff:169.254.169.254",
    "::ffff:93.184.216.34",
    "64:ff9b::7f00:1",
    "64:ff9b::5db8:d822",
    "64:ff9b:1::1",
    "100::1",
    "2001::1",
    "2001:db8::1",
    "2001:10::1",
    "2002:7f00:1::",
    "3fff::1",
    "5f00::1",
    "fc00::1",
    "fd00:ec2::254",
    "fe80::1",
    "fec0::1",
    "ff02::1",
    "ff0e::1",
]


@pytest.mark.parametrize("address", INSIDE)
def test_a_name_that_resolves_to_an_internal_address_is_refused(address: str) -> None:
    # The second name exists only in internal networks.
    for url in ("https://hooks.example/", "https://metadata.google.internal/computeMetadata/v1/"):
        for verb in (to(address).vet, functools.partial(to(address).send, "POST")):
            with pytest.raises(errors.UnsafeAddress, match="unsafe-address"):
                verb(url)


@pytest.mark.parametrize("address", [PUBLIC, "8.8.8.8", "2606:2800:220:1::1", "2a00:1450::1"])
def test_an_address_of_the_internet_is_public(address: str) -> None:
    assert safe_http.is_public(ipaddress.ip_address(address))


@given(st.ip_addresses())
def test_no_address_that_is_not_global_is_public(address: Any) -> None:
    if safe_http.is_public(address):
        assert address.is_global
        assert not address.is_multicast


def test_a_name_is_refused_if_one_of_its_addresses_is_internal() -> None:
    client = safe_http.HttpClient(LONG, resolver=lambda _host: [PUBLIC, "10.0.0.1"])
    with pytest.raises(errors.UnsafeAddress):
        client.send("POST", "https://hooks.example/")


@pytest.mark.parametrize("found", [[], ["nonsense"], ["fe80::1%x y"]])
def test_a_name_without_addresses_is_not_reached(found: list[str]) -> None:
    with pytest.raises((errors.Unreachable, errors.UnsafeAddress)):
        safe_http.HttpClient(LONG, resolver=lambda _host: found).send(
            "GET", "https://hooks.example/"
        )


def test_a_resolver_that_fails_or_hangs_ends_in_time() -> None:
    def fails(_host: Any) -> None:
        raise socket.gaierror(-2, "Name or service not known")

    over = threading.Event()
    for resolver in (fails, lambda _host: over.wait()):
        with pytest.raises(errors.Unreachable):
            safe_http.HttpClient(SHORT, resolver=resolver).send("GET", "https://hooks.example/")  # type: ignore[arg-type]
    over.set()


def test_a_name_is_resolved_once_and_its_address_pinned(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """DNS rebinding: the name resolves to a public address when checked, and to loopback later."""
    answers = itertools.chain([[PUBLIC]], itertools.repeat(["127.0.0.1"]))
    opened = []

    def open_(address: str, *, timeout: Any) -> None:
        opened.append(address)
        raise ConnectionRefusedError

    monkeypatch.setattr(socket, "create_connection", open_)
    client = safe_http.HttpClient(LONG, resolver=lambda _host: next(answers))
    with pytest.raises(errors.Unreachable):
        client.send("POST", "https://hooks.example/")
    assert opened == [(PUBLIC, 443)]
    with pytest.raises(errors.UnsafeAddress):
        client.send("POST", "https://hooks.example/")
    assert len(opened) == 1


def test_only_tests_reach_loopback_and_only_on_their_port() -> None:
    with loopback_servers.receiver() as told:
        client = loopback_servers.client(told.port)
        assert client.send("GET", f"http://hooks.example:{told.port}/").status == 200
        for other in (
            safe_http.HttpClient(LONG, resolver=lambda _host: ["127.0.0.1"]),
            to("127.0.0.1"),
        ):
            with pytest.raises(errors.UnsafeAddress):
                other.send("GET", f"http://hooks.example:{told.port}/")
        elsewhere = loopback_servers.client(told.port, resolver=lambda _host: [PUBLIC])
        with pytest.raises(errors.UnsafeAddress):  # Plain http to the Internet
            elsewhere.send("GET", f"http://hooks.example:{told.port}/")
        assert len(told.heard) == 1


# Modules that open connections. The operator chooses the mail server and the queue.
OPENING = {
    "aiohttp", "ftplib", "http.client", "httpx", "requests", "smtplib", "socket", "ssl",
    "telnetlib", "urllib.request", "urllib3", "google.auth.transport.requests",
}  # fmt: skip
# The doctor calls only PUBLIC_URL, which the operator sets.
MAY_OPEN = {"safe_http", "smtp", "cloud_tasks", "server_address", "service_checks"}


@pytest.mark.slow
def test_no_other_module_connects_to_addresses_that_people_entered() -> None:
    found = set()
    for path in (ROOT / "comments").rglob("*.py"):
        text = path.read_text()
        if not any(each.rpartition(".")[2] in text for each in OPENING):
            continue
        for node in ast.walk(ast.parse(text)):
            names = [each.name for each in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.module:
                names = [node.module, *(f"{node.module}.{each.name}" for each in node.names)]
            if OPENING & set(names):
                found.add(path.stem)
    assert found == MAY_OPEN
