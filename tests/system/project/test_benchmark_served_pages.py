"""The benchmark of served pages runs, and says something of every call."""

import pytest

from benchmarks.serving import page_figures, served_pages

pytestmark = pytest.mark.slow


def test_a_quick_run_measures_every_call(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, count in {"_OTHERS": 2, "_COPIES": 2, "_SERVED": 20, "_QUICK_ROUNDS": 1}.items():
        monkeypatch.setattr(served_pages, name, count)
    served_pages.main(["--quick", "--sizes", "20,60"])
    printed = capsys.readouterr().out
    for size in (20, 60):
        thread = served_pages.Stocked(size, "x", 0)
        for call in thread.calls():
            assert f"| {size} | {call.name} |" in printed
        assert f"| 304 to a 200 in bytes sent, first page at {size} | 0." in printed
        for cold in ("the first answer of a process", "new thread, new process"):
            assert f"| first page at {size}, {cold}, to warm |" in printed or size == 20
        rested = (
            f"| first page at {size}, the first answer of a process, to warm after a rest as long"
        )
        assert rested in printed or size == 20
        for kind in ("new process", "process that serves"):
            for warm in ("in turns", "in a row of the same process"):
                row = f"| first page at {size}, new thread, {kind}, to warm {warm} |"
                assert row in printed or size == 20
        new = f"| first page at {size}, new thread, process that serves, to warm |"
        assert new in printed or size == 20
        assert f"| 304 to a 200 that is made, at {size} |" in printed or size == 20
    assert "page after edit, p50 ms" in printed
    assert "starts: the first answer after" in printed


def test_a_request_is_sent_as_http_says() -> None:
    posted = page_figures.request("/there", {"Content-Type": "application/json"}, "[1]")
    assert posted.startswith("POST /there HTTP/1.1\r\n")
    assert posted.endswith("\r\nContent-Length: 3\r\n\r\n[1]")
    asked = page_figures.request("/there", {"If-None-Match": '"a"'})
    assert asked.startswith("GET /there HTTP/1.1\r\nHost: 127.0.0.1\r\n")
    assert asked.endswith('If-None-Match: "a"\r\n\r\n')
