"""The commands of Google's command line that the documents show exist, with these options."""

import functools
import re
import shlex
import sys
from typing import Any

from tests.support import optional_tools, programs

DOCUMENTS = [path for folder in ("", "docs") for path in (programs.ROOT / folder).glob("*.md")]


def invocations(text: str) -> list[list[str]]:
    """Return the words of each command in a text's code fences, also of nested ones."""
    fenced = re.findall(r"^```\n(.*?)^```$", text, flags=re.DOTALL | re.MULTILINE)
    found: list[str] = []
    for line in "".join(fenced).replace("\\\n", "").splitlines():
        found += re.findall(r"\$\((gcloud .*?)\)(?=[\".])", line)
        if line.strip().startswith("gcloud "):
            found.append(line)
    return [shlex.split(each)[1:] for each in found]


@functools.cache
def tree() -> dict[str, Any]:
    """Return what Google's command line knows: nested commands, with their flags."""
    sys.path.append(str(optional_tools.gcloud_commands().parent))
    try:
        import gcloud_completions  # type: ignore[import-not-found]  # noqa: PLC0415
    finally:
        sys.path.pop()
    found: dict[str, Any] = gcloud_completions.STATIC_COMPLETION_CLI_TREE
    return found


def problem(words: list[str]) -> str:
    """Say what is wrong with a command; "" if nothing is."""
    node, everywhere = tree(), tree()["flags"]
    for word in words:
        if word in node.get("commands", {}):
            node = node["commands"][word]
    if node.get("commands"):
        return "no such command"
    for word in words:
        name, _, value = word.partition("=")
        if not name.startswith("--"):
            continue
        known = node["flags"] | everywhere
        kind = known.get(name, known.get(name.replace("--no-", "--")))
        if kind is None:
            return f"no option {name}"
        if isinstance(kind, list) and value not in kind:
            return f"{name} must be one of {kind}"
    return ""


def test_the_commands_of_google_in_the_documents_exist() -> None:
    given = [words for path in DOCUMENTS for words in invocations(path.read_text())]
    assert ["app", "deploy", "app.yaml", "cron.yaml"] in given
    assert {" ".join(words): problem(words) for words in given if problem(words)} == {}


def test_the_check_finds_wrong_commands() -> None:
    assert problem(["app", "deplyo", "app.yaml"]) == "no such command"
    assert problem(["app", "deploy", "--nothing"]) == "no option --nothing"
    assert problem(["app", "deploy", "app.yaml", "--quiet"]) == ""
    text = "```\necho \"A=$(gcloud app describe --format='value(b)')\"\n  gcloud app deploy\n```"
    assert invocations(text) == [["app", "describe", "--format=value(b)"], ["app", "deploy"]]
