"""The worker refuses malformed and ambiguous requests, which reach no application."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support import worker_process
from tests.support.worker_examples import (
    CHUNKED,
    LAST,
    POST,
    Echo,
)

BAD_SIZES = (
    b"zz", b"+c", b"_1", b"-1", b"0x1", b"", b" 1", b"1 ", b"1_0", b"1g", b"\xb2",
    b"1\n", b"1;=x", b"1;a\x00", b'1;a="b', b"c\r",
)  # fmt: skip
NO_REQUESTS = (
    (POST % (1, b""))[:-2] + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    CHUNKED[:-2] + b"Content-Length: 5\r\n\r\n0\r\n\r\n",
    b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
    b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: +1\r\n\r\na",
    b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: -1\r\n\r\na",
    b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1, 1\r\n\r\na",
    b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n",
    b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n",
    b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
    b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
    b"POST / HTTP/1.0\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: h\r\nX-A: b\r\n c\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: h\r\nX\x00A: b\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: h\r\nX-A: b\rc\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: h\r\nHost: i\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: h\nX-A: b\r\n\r\n",
    b"GET / HTTP/1.1\nHost: h\n\n",
    b"GET /\xff HTTP/1.1\r\nHost: h\r\n\r\n",
    b"GET  / HTTP/1.1\r\nHost: h\r\n\r\n",
    b"\r\n\r\n\r\nGET / HTTP/1.1\r\nHost: h\r\n\r\n",
    b"\x16\x03\x01\x00",
    CHUNKED + b"1\r\nab\r\n0\r\n\r\n",
    CHUNKED + b"1\r\na\n0\r\n\r\n",
    CHUNKED + b"0\r\nContent-Length: 3\r\n\r\n",
    CHUNKED + b"0\r\nX: a\nY: b\r\n\r\n",
    CHUNKED + b"0\r\n" + b"X: a\r\n" * 2_000 + b"\r\n",
    b"GET /" + b"a" * 40_000,
    b"GET / HTTP/1.1\r\nHost: h\r\n" + b"X: a\r\n" * 150 + b"\r\n",
    b"GET / HTTP/1.1\r\nHost: h\r\nX: " + b"a" * 10_000 + b"\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: h\r\n" + (b"X: " + b"a" * 5_000 + b"\r\n") * 7 + b"\r\n",
    b"GET / HTTP/1.2\r\nHost: h\r\n\r\n",
    b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: " + b"1" * 5_000 + b"\r\n\r\n",
)  # fmt: skip


def test_the_log_of_a_refusal_has_no_control_characters(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with worker_process.serving(Echo()) as served:
        for sent in (b"GET\x1b[31m / HTTP/1.1\r\n\r\n", b"GET / HTTP/1.1\r\nX\x1b\rA: b\r\n\r\n"):
            assert b" 400 " in served.ask(sent)
    messages = [each.getMessage() for each in caplog.records]
    assert len(messages) == 2
    assert all(each.isprintable() for each in messages)


class TestRefusals:
    @pytest.fixture(scope="class")
    @classmethod
    def service(cls) -> Iterator[Any]:
        echo = Echo()
        with worker_process.serving(echo) as served:
            yield served, echo

    @pytest.mark.parametrize("size", BAD_SIZES)
    def test_a_chunk_whose_size_is_malformed_is_refused(self, service: Any, size: bytes) -> None:
        served, echo = service
        found = served.ask(CHUNKED + size + b"\r\n" + b"x" * 12 + b"\r\n0\r\n\r\n" + LAST)
        assert found.startswith(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n")
        assert found.count(b"HTTP/1.1") == 1
        assert echo.asked == []

    @pytest.mark.parametrize("sent", NO_REQUESTS, ids=range(len(NO_REQUESTS)))
    def test_an_invalid_or_ambiguous_request_reaches_no_application(
        self, service: Any, sent: bytes
    ) -> None:
        served, echo = service
        found = served.ask(sent + LAST)
        status = int(found.split()[1])
        assert status in {400, 414, 417, 431, 501}
        assert found.count(b"HTTP/1.1") == 1
        assert b'"status": %d' % status in found
        assert echo.asked == []

    @pytest.mark.parametrize(
        ("sent", "status"),
        [
            (b"GET / HTTP/1.1\nHost: h", 400),
            (b"GET /" + b"a" * 40_000, 414),
            (b"GET / HTTP/1.1\r\nX: " + b"a" * 40_000, 431),
            (b"GET / HTTP/1.1\r\n" + b"X: a\r\n" * 6_000, 431),
            (b"\r\n\r\n\r\n", 400),
            (CHUNKED + b"1\nx", 400),
            (CHUNKED + b"0\r\n" + b"X: a\r\n" * 6_000, 431),
        ],
        ids=range(7),
    )
    def test_a_hopeless_request_is_refused_before_its_end(
        self, service: Any, sent: bytes, status: int
    ) -> None:
        found = service[0].ask(sent)
        assert found.startswith(b"HTTP/1.1 %d " % status)
        assert b"\r\nAccess-Control-Allow-Origin: *\r\n" in found
        assert service[1].asked == []

    def test_a_client_that_keeps_sending_can_read_the_refusal(self, service: Any) -> None:
        served, _ = service
        with served.connect() as connection:
            connection.sendall(b"GET / HTTP/1.1\r\nHost : h\r\n\r\n")
            assert worker_process.answer(connection)[0].startswith(b"HTTP/1.1 400")
            for _ in range(10):
                connection.sendall(b"x" * 10_000)
            assert worker_process.rest(connection) == b""
