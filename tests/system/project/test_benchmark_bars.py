"""The shortest forms of the benchmarks with servers measure every bar.

The regular run tries only the quickest benchmark; `BENCHMARKS=3` tries all.
"""

import os

import pytest

from benchmarks import __main__ as benchmarks
from benchmarks import clients

BARS = {
    "pages": ["pages size", "pages whole", "pages cold", "pages 304"],
    "imports": [
        *(f"{system} {bar}" for system in ("disqus", "generic")
          for bar in ("first pass", "linear", "verify", "memory")),
        "import beside reader", "import beside poster",
    ],
    "writing": [
        "writing page 100 / WSGI", "writing page 100 / Flask",
        "writing page 300 / WSGI", "writing page 300 / Flask",
        "writing page after post", "writing counts", "writing alone", "writing alone, limits",
        "writing eight in one thread", "writing the same, limits", "writing the same, p99",
        "writing the same, shares", "writing eight in eight threads", "writing the same, limits",
        "writing the same, p99", "writing the same, shares", "writing kept", "writing start",
        "writing memory", "writing commands", "writing import",
    ],
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.embedded
@pytest.mark.parametrize("name", list(BARS)[: int(os.environ.get("BENCHMARKS", "1"))])
def test_a_quick_run_measures_every_bar(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    benchmarks.run([name], quick=True)
    lines = capsys.readouterr().out.splitlines()
    assert all(line.startswith(f"{bar} ") for line, bar in zip(lines, BARS[name], strict=True))
    assert all(" held" in line or " MISSED" in line for line in lines)
    assert all(" held" in line for line in lines if line.startswith("writing kept"))


def test_a_request_is_valid_http() -> None:
    posted = clients.request("/there", {"Authorization": "Bearer x"}, "[1]")
    assert posted.startswith("POST /there HTTP/1.1\r\n")
    assert posted.endswith("\r\nContent-Length: 3\r\n\r\n[1]")
    asked = clients.request("/there", {"If-None-Match": '"a"'})
    assert asked.startswith("GET /there HTTP/1.1\r\nHost: 127.0.0.1\r\n")
    assert asked.endswith('If-None-Match: "a"\r\n\r\n')
