"""Only `optional_tools` skips tests, and a missing tool fails them in CI."""

import re

import pytest

from tests.conftest import ROOT
from tests.support import optional_tools

OTHER_SKIPS = re.compile(r"pytest\.skip\(|mark\.skip|skipif|importorskip|unittest\.skip|xfail")


def test_a_missing_tool_skips_a_test_and_fails_it_in_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match="no such program"):
        optional_tools.require(None, "no such program")
    monkeypatch.setenv("CI", "true")
    outcomes = (pytest.skip.Exception, pytest.fail.Exception)
    with pytest.raises(outcomes, match="no such program") as caught:
        optional_tools.require(None, "no such program")
    assert caught.type is pytest.fail.Exception
    optional_tools.require("/bin/there", "no such program")


def test_a_real_export_may_be_missing_and_the_gate_knows_the_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("CI", "true")
    known = re.search(r"grep -v '(of the shared data)\\|", (ROOT / "scripts/test").read_text())
    assert known is not None
    with pytest.raises(pytest.skip.Exception, match=known[1]):
        optional_tools.real_export("no such export.xml")


def test_no_other_module_skips() -> None:
    found = [
        f"{path.relative_to(ROOT)}: {line}"
        for folder in ("tests", "emulator/tests")
        for path in sorted((ROOT / folder).rglob("*.py"))
        if "node_modules" not in path.parts
        # `store_runs` skips only with --store.
        and path.name not in {"optional_tools.py", "store_runs.py", "test_optional_tools.py"}
        for line in path.read_text(encoding="utf-8").splitlines()
        if OTHER_SKIPS.search(line)
    ]
    assert found == []
