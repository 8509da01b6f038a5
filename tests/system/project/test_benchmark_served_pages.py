"""The benchmark of served pages runs and reports every call and every threshold."""

import pytest

from benchmarks.serving import page_figures, served_pages

pytestmark = [pytest.mark.slow, pytest.mark.embedded]
BARS = ("size", "whole", "cold", "304")


def test_a_quick_run_measures_every_call_and_every_threshold(
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
    assert "page after edit, p50 ms" in printed
    assert "starts: the first answer after" in printed
    for bar in BARS:
        assert f"\npages {bar} " in printed


def test_a_request_is_valid_http() -> None:
    posted = page_figures.request("/there", {"Content-Type": "application/json"}, "[1]")
    assert posted.startswith("POST /there HTTP/1.1\r\n")
    assert posted.endswith("\r\nContent-Length: 3\r\n\r\n[1]")
    asked = page_figures.request("/there", {"If-None-Match": '"a"'})
    assert asked.startswith("GET /there HTTP/1.1\r\nHost: 127.0.0.1\r\n")
    assert asked.endswith('If-None-Match: "a"\r\n\r\n')
