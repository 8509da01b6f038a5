"""Safe HTTP: the only way to send requests to addresses that people entered.

This module owns the defense against requests to the service's own network (SSRF). All requests to
such addresses use `HttpClient`; no other code in the backend connects to them.

Invariant: A name is resolved once per request, and the socket connects only to one of the checked
addresses, so an attacker gains nothing by changing the name's addresses
(test_safe_http.py::test_a_name_is_resolved_once_and_its_address_pinned).

If any address of the name is not public, the request is refused. `Host`, SNI and the certificate
check use the name. Redirects are not followed. Environment variables for proxies and the file
.netrc have no effect. Connecting and the whole request have time limits, and the response has a
size limit. A watchdog shuts down the socket, because the time-outs for single reads restart with
every byte from a slow peer.

This module does not use a library. urllib3 can connect to an address and check the certificate
against a name, but its time-outs do not limit a response that arrives byte by byte. The pools,
retries and redirects of urllib3 would also have to be disabled. Sockets from the standard library
under `http.client` need less code.
"""

import contextlib
import dataclasses
import http.client
import ipaddress
import re
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent import futures
from typing import TypeVar
from urllib.parse import urlsplit

import idna

from comments import errors

PORTS = frozenset({443, 8443})
_USUAL = {"https": 443, "http": 80}
_LONGEST = 2_000  # Maximum number of characters in a URL.
_LONGEST_HOST = 253
_PLAIN = re.compile(r"[!-~]+")
_LABEL = re.compile(r"(?!-)[a-z0-9-]{1,63}(?<!-)")
# A last label that parsers treat as part of an IPv4 address, in any IPv4 notation.
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
_CHUNK = 16 * 1024
_MOST_ADDRESSES = 3  # The maximum number of a name's addresses, which are tried in turn.

# `is_global` is not sufficient: it includes multicast addresses, and ranges that lead to IPv4
# addresses. For IPv6, only the range that is allocated to the Internet is accepted.
_V6_INTERNET = ipaddress.IPv6Network("2000::/3")
_NOT_PUBLIC = tuple(
    map(
        ipaddress.ip_network,
        (
            "192.0.0.0/24",  # Protocol assignments.
            "192.88.99.0/24",  # 6to4 relays.
            "168.63.129.16/32",  # Azure's services for the host itself.
            "2001::/23",  # Protocol assignments, including Teredo.
            "2002::/16",  # 6to4.
            "3fff::/20",  # Documentation.
        ),
    )
)

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
T = TypeVar("T")
Resolve = Callable[[str], Sequence[str]]


@dataclasses.dataclass(frozen=True, slots=True)
class RequestLimits:
    """The limits of a request: times in seconds, and the size of the response body in bytes.

    `total` limits the time from name resolution to the end of the response; `connect` limits each
    step before the response.
    """

    connect: float = 5.0
    total: float = 10.0
    answer: int = 64 * 1024


@dataclasses.dataclass(frozen=True, slots=True)
class HttpResponse:
    """A response.

    If `is_cut` is set, the body exceeded the limit and `body` contains only its beginning.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes
    is_cut: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class Target:
    """A well-formed URL, split into its ASCII host name, its port and its path."""

    is_secure: bool
    host: str
    port: int
    path: str

    @property
    def authority(self) -> str:
        """Return the value of the `Host` header."""
        usual = _USUAL["https" if self.is_secure else "http"]
        return self.host if self.port == usual else f"{self.host}:{self.port}"


def is_public(address: Address) -> bool:
    """Return whether an address is on the public Internet."""
    if isinstance(address, ipaddress.IPv6Address) and address not in _V6_INTERNET:
        return False
    nearer = any(
        address in network for network in _NOT_PUBLIC if network.version == address.version
    )
    return address.is_global and not address.is_multicast and not nearer


def resolve(host: str) -> list[str]:
    """Resolve a name with the system's resolver."""
    infos = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in infos))


class HttpClient:
    """Sends requests to addresses that people entered.

    Args:
        limits: apply to every request.
        resolver: returns the addresses of a name.
        context: the TLS settings, with the trusted certificates.
        loopback_ports: ports at 127.0.0.1 to which requests are allowed, also with http. This
            argument is only for tests and never comes from a setting.
    """

    def __init__(
        self,
        limits: RequestLimits | None = None,
        *,
        resolver: Resolve = resolve,
        context: ssl.SSLContext | None = None,
        loopback_ports: frozenset[int] = frozenset(),
    ) -> None:
        self._limits = limits or RequestLimits()
        self._resolver = resolver
        self._context = context or ssl.create_default_context()
        self._loopback = loopback_ports

    def check(self, url: str) -> Target:
        """Parse and check a URL without resolving its name; `send` resolves it each time.

        Raises:
            errors.UnsafeAddress: the URL is not https with an Internet host name and an allowed
                port.
        """
        if len(url) > _LONGEST or "\\" in url or not url.isprintable() or " " in url:
            raise errors.UnsafeAddress("not-a-url")
        try:
            parts = urlsplit(url)
            port, host = parts.port, parts.hostname or ""
        except ValueError as error:
            raise errors.UnsafeAddress("not-a-url") from error
        port = port if port is not None else _USUAL.get(parts.scheme, 0)
        if (
            set("@[") & set(parts.netloc)
            or parts.fragment
            or not _PLAIN.fullmatch(parts.path or "/")
        ):
            raise errors.UnsafeAddress("unsafe-url")
        if parts.query and not _PLAIN.fullmatch(parts.query):
            raise errors.UnsafeAddress("unsafe-url")
        if port not in self._loopback and (parts.scheme != "https" or port not in PORTS):
            raise errors.UnsafeAddress("bad-https-port", ports=" or ".join(map(str, sorted(PORTS))))
        if parts.scheme not in _USUAL:
            raise errors.UnsafeAddress("not-a-url")
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        return Target(parts.scheme == "https", _host(host), port, path)

    def vet(self, url: str) -> Target:
        """Check a URL and resolve its name, but do not connect.

        Raises:
            errors.UnsafeAddress: `check` refuses the URL, or an address of the name is not public.
            errors.BadInput: the name has no address.
        """
        target = self.check(url)
        try:
            self._addresses(target)
        except errors.Unreachable as error:
            raise errors.BadInput("url", "unreachable-url") from error
        return target

    def send(
        self, method: str, url: str, *, body: bytes = b"", headers: Mapping[str, str] | None = None
    ) -> HttpResponse:
        """Send a request and return the response, which can have any status.

        Raises:
            errors.UnsafeAddress: `check` refuses the URL, or an address of the name is not public.
            errors.Unreachable: no response arrived in time, or it was not HTTP.
        """
        end = time.monotonic() + self._limits.total
        target = self.check(url)
        addresses = self._addresses(target)
        plain = {"Host": target.authority, "Connection": "close", **(headers or {})}
        with self._connect(target, addresses, end) as connection:
            connection.request(method, target.path, body=body or None, headers=plain)
            response = connection.getresponse()
            return _answer(response, self._limits.answer)

    def _addresses(self, target: Target) -> list[str]:
        """Resolve a name. Raise an error if any of its addresses may not be reached."""
        try:
            patience = min(self._limits.connect, self._limits.total)
            texts = _within(patience, lambda: self._resolver(target.host))
            addresses = [ipaddress.ip_address(text) for text in texts]
        except (OSError, ValueError) as error:
            raise errors.Unreachable("no-address", host=target.host) from error
        for address in addresses:
            if not (
                self._is_for_tests(target, address) or (target.is_secure and is_public(address))
            ):
                raise errors.UnsafeAddress("unsafe-address", host=target.host)
        if not addresses:
            raise errors.Unreachable("no-address", host=target.host)
        return [str(address) for address in addresses]

    def _is_for_tests(self, target: Target, address: Address) -> bool:
        return target.port in self._loopback and str(address) == "127.0.0.1"

    @contextlib.contextmanager
    def _connect(
        self, target: Target, addresses: Sequence[str], end: float
    ) -> Iterator[http.client.HTTPConnection]:
        """Connect to the first address that accepts; shut down the connection when time is up."""
        watched = _Watched(max(0.0, end - time.monotonic()))
        try:
            watched.watch(_open(addresses, target.port, self._limits.connect, end))
            if target.is_secure:
                watched.secure(self._context, target.host)
            connection = http.client.HTTPConnection(target.host, target.port)
            connection.sock = watched.socket
            yield connection
            if watched.is_over:
                # A connection that the watchdog shut down looks like the end of a response
                raise TimeoutError
        except (OSError, http.client.HTTPException) as error:
            raise errors.Unreachable(
                "no-answer-in-time" if watched.is_over else "unreachable", host=target.host
            ) from error
        finally:
            watched.close()


class _Watched:
    """A socket that is shut down when its time is up, even in the middle of an operation."""

    def __init__(self, seconds: float) -> None:
        self.is_over = False
        self.socket: socket.socket | None = None
        self._lock = threading.Lock()
        self._timer = threading.Timer(seconds, self._end)
        self._timer.daemon = True
        self._timer.start()

    def watch(self, opened: socket.socket) -> None:
        """Start watching a socket."""
        with self._lock:
            self.socket = opened
            if self.is_over:
                raise TimeoutError

    def secure(self, context: ssl.SSLContext, host: str) -> None:
        """Start TLS with a peer whose certificate must be valid for the host name."""
        plain = self.socket
        if plain is None:
            raise TimeoutError
        # The handshake is a separate step, because wrapping detaches the watched socket.
        self.watch(context.wrap_socket(plain, server_hostname=host, do_handshake_on_connect=False))
        secured = self.socket
        if isinstance(secured, ssl.SSLSocket):
            secured.do_handshake()

    def close(self) -> None:
        """Stop the watchdog and close the socket."""
        self._timer.cancel()
        if self.socket is not None:
            self.socket.close()

    def _end(self) -> None:
        with self._lock:
            self.is_over = True
            if self.socket is not None:
                with contextlib.suppress(OSError):
                    # Do not use the TLS shutdown, which would change state that another thread
                    # reads.
                    socket.socket.shutdown(self.socket, socket.SHUT_RDWR)


def _host(host: str) -> str:
    """Return an Internet host name in the form that certificates use."""
    problem = errors.UnsafeAddress("bad-host")
    try:
        plain = host if host.isascii() else idna.encode(host, uts46=True).decode()
    except idna.IDNAError as error:
        raise problem from error
    labels = plain.lower().split(".")
    is_name = len(labels) > 1 and all(map(_LABEL.fullmatch, labels))
    if not is_name or _NUMBER.fullmatch(labels[-1]) or len(plain) > _LONGEST_HOST:
        raise problem
    return plain.lower()


def _open(addresses: Sequence[str], port: int, seconds: float, end: float) -> socket.socket:
    """Open a socket to the first address that accepts the connection before `end`."""
    failed: OSError | None = None
    for address in addresses[:_MOST_ADDRESSES]:
        left = end - time.monotonic()
        if left <= 0:
            raise TimeoutError
        try:
            # The address is a literal, so nothing is resolved here.
            return socket.create_connection((address, port), timeout=min(seconds, left))
        except OSError as error:
            failed = error
    raise failed or OSError("no address")


def _within(seconds: float, ask: Callable[[], T]) -> T:
    """Call `ask`, but wait at most `seconds`.

    The limit is enforced here because the system's resolver has its own, different time-outs.
    """
    asked: futures.Future[T] = futures.Future()

    def run() -> None:
        try:
            asked.set_result(ask())
        except Exception as error:  # noqa: BLE001 - raised again in the waiting thread
            asked.set_exception(error)

    # Do not use an executor, because the process would wait for it at exit.
    threading.Thread(target=run, daemon=True).start()
    return asked.result(timeout=seconds)


def _answer(response: http.client.HTTPResponse, most: int) -> HttpResponse:
    body, whole = b"", response.length
    while len(body) <= most:
        chunk = response.read1(_CHUNK)
        if not chunk:
            break
        body += chunk
    if whole is not None and len(body) < min(whole, most):
        raise http.client.IncompleteRead(body)  # The peer ended the connection early.
    headers = {name.lower(): value for name, value in response.getheaders()}
    return HttpResponse(response.status, headers, body[:most], is_cut=len(body) > most)
