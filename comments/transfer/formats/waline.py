"""Read the JSON export of Waline.

    {"type": "waline", "version": 1, "tables": ["Comment", "Counter", "Users"], "data": {
      "Comment": [{"objectId": "1", "url": "/page/", "nick": "", "mail": "", "link": "",
        "user_id": "", "comment": "", "pid": "", "rid": "", "status": "approved", "like": 1,
        "sticky": 1, "insertedAt": ""}],
      "Counter": [..], "Users": [..]}}

A comment has the fields of a Valine comment (`valine`) and some additional fields. Installations
with an SQL database write ids as numbers and times without a zone. The table `Users` contains
hashes of passwords, so the import does not use this table; each comment contains its author's name
and addresses.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from comments.transfer import import_source
from comments.transfer.formats import valine
from comments.transfer.parsing import json_reader

SYSTEM = "waline"

_WHAT = "a Waline export"
_LEFT_OUT = {
    "Counter": "counters of page views and reactions",
    "Users": "accounts with their passwords",
}
_TYPE = re.compile(rb'"type"\s{0,20}:\s{0,20}"waline"')


def read(path: Path) -> Iterator[import_source.Item]:
    """Yield the pages and comments in an export, and note the contents of its other tables."""
    pages: set[str] = set()
    for fields in json_reader.items(path, "data.Comment.item", what=_WHAT):
        yield from valine.items(fields, SYSTEM, pages)
    for table, what in _LEFT_OUT.items():
        place = f"data.{table}.item"
        for fields in json_reader.items(path, place, what=_WHAT, unit="record", is_required=False):
            yield import_source.LeftOut(fields.number, what)


def recognizes(head: bytes) -> bool:
    """Return whether a file that begins with these bytes seems to be an export of Waline."""
    return _TYPE.search(head) is not None
