"""Removal of comments from the widget's files when they are served; this saves a quarter of them.

Only lines that contain nothing but a comment are removed. A comment on a line with code is kept. A
test checks that no line in these files begins inside a string.
"""

import re

_COMMENT = re.compile(
    r"""^[ \t]* (?: /\* (?: (?!\*/) . )* \*/ [ \t]* | // [^\n]* ) \n""",
    re.MULTILINE | re.DOTALL | re.VERBOSE,
)


def without_comments(source: str) -> str:
    """Return a script or a style sheet without its comment lines."""
    return _COMMENT.sub("", source)
