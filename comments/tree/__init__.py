"""The comment tree: the only module that changes its shape, and the only one that writes comments.

Every verb is called inside `datastore.transaction`, reads what it needs, decides, and returns a
`Change` whose `writes` the caller applies in the same transaction. Every verb is safe to run
again after its own commit was applied.

What must stay true, whatever is interrupted or runs at once (`repair` checks it):

- a comment's hash is its parent's hash plus the segment of its number; a root's is the segment;
- numbers come from the parent's child counter (a root's from the thread's), are never reused,
  and counter, number and comment are stored by one commit: no gap, no orphan;
- a comment is listed when it is approved or when something listed stands below it;
- nothing that was retracted comes back; what was refused comes back by a moderator only, while its
  text is kept.

A reply writes its parent and not its thread, so replies to different parents do not meet. A root
writes its thread.
"""

from comments.tree.batches import append_imported
from comments.tree.changes import count_votes, edit, retract
from comments.tree.jobs import folded, mend, mend_thread, refile, unfold, without_addresses
from comments.tree.naming import Brought
from comments.tree.naming import decode as brought
from comments.tree.posts import append
from comments.tree.titles import adopt, entitle, filed
from comments.tree.values import Change, Draft, Imported, Place, Refiled, Text
from comments.tree.verdicts import Decision, judge, pin, restore

__all__ = [
    "Brought",
    "Change",
    "Decision",
    "Draft",
    "Imported",
    "Place",
    "Refiled",
    "Text",
    "adopt",
    "append",
    "append_imported",
    "brought",
    "count_votes",
    "edit",
    "entitle",
    "filed",
    "folded",
    "judge",
    "mend",
    "mend_thread",
    "pin",
    "refile",
    "restore",
    "retract",
    "unfold",
    "without_addresses",
]
