#!/usr/bin/env python3
"""Refuse code that could write a comment or a vote around its owner.

`comments/datastore/` refuses such a commit when it happens; this finds the code before it runs.
Outside the owners and the door itself nothing may

- make or put entities of an owned kind: `models.Comment(...)`, `models.Vote(...)`;
- claim to be an owner: `datastore.Writes("tree", ...)`;
- put or delete around `datastore.apply`: `.put()`, `put_multi`, `delete_multi`, their async forms,
  or the client of google-cloud-datastore.

Usage: scripts/check_owners.py [FILE ...]; without files, every module of comments/ and main.py.
"""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OWNERS = {
    "Comment": "tree", "Vote": "votes", "VotesDue": "votes", "VoterNetwork": "votes",
    "Bucket": "folding", "BucketDirectory": "folding", "Ranking": "folding",
    "FollowerList": "compaction", "FollowerSegment": "compaction", "FollowerMark": "followers",
    "Subscriber": "subscriptions", "Subscription": "subscriptions", "RateBucket": "limits",
    "Usage": "usage",
    "Counter": "tallies", "Participation": "tallies", "Standing": "tallies",
    "Category": "tallies", "Day": "tallies", "Appearance": "tallies",
    "Event": "outbox", "Message": "messages", "SiteHooks": "hooks",
    "Account": "accounts", "Identity": "accounts", "Session": "accounts", "Ticket": "accounts",
    "SiteKeys": "accounts", "Providers": "accounts",
    "AuditEntry": "audit", "ErasureDue": "erasures",
    "Rulebook": "rulebook", "Report": "reports", "Advice": "advice",
}  # fmt: skip
DOOR = "datastore"
KINDS = "models"  # the package whose modules define the kinds for one another
WRITES = {
    "put", "put_async", "put_multi", "put_multi_async",
    "delete_multi", "delete_multi_async", "delete_async",
    "get_or_insert", "get_or_insert_async",
}  # fmt: skip


def problems(path: Path) -> Iterator[str]:
    """Each line of a module that writes around an owner."""
    # An owner that is a package owns by all its modules.
    module = path.parent.name if path.parent.name in {*OWNERS.values(), DOOR} else path.stem
    if module == DOOR:
        return
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"), str(path))):
        if isinstance(node, ast.Call):
            fault = _call(node, module)
        elif isinstance(node, ast.ImportFrom):
            fault = _import(node, module, is_kinds=path.parent.name == KINDS)
        else:
            continue
        if fault:
            yield f"{path}:{node.lineno}: {fault}"


def _call(node: ast.Call, module: str) -> str | None:
    name = ast.unparse(node.func)
    last = name.rpartition(".")[2]
    if name == f"models.{last}" and OWNERS.get(last, module) != module:
        return f"only {OWNERS[last]} makes a {last}"
    if last == "Writes" and module not in OWNERS.values():
        first = node.args[0] if node.args else None
        if not isinstance(first, ast.Constant) or first.value in OWNERS.values():
            return "an owner is named by itself, as a literal"
    if last in WRITES:
        return f"{name}() writes around datastore.apply"
    return None


def _import(node: ast.ImportFrom, module: str, *, is_kinds: bool) -> str | None:
    names = {alias.name for alias in node.names}
    if node.module == "google.cloud.datastore" or (
        node.module == "google.cloud" and "datastore" in names
    ):
        return "google-cloud-datastore's client writes around the guard"
    taken = {name for name in names if OWNERS.get(name, module) != module}
    if f"{node.module}.".startswith("comments.models.") and taken and not is_kinds:
        return f"import models and leave {', '.join(sorted(taken))} to its owner"
    return None


def main(arguments: list[str]) -> int:
    """Check the files named, or the whole backend; print what is wrong."""
    files = [Path(name) for name in arguments] or [
        *sorted((ROOT / "comments").rglob("*.py")),
        ROOT / "main.py",
    ]
    found = [problem for path in files if path.exists() for problem in problems(path)]
    print("\n".join(found) if found else "owners: ok")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
