"""The tree in the docstring of `errors` has each class, below its base class."""

import re

from comments import errors

# Bars and spaces, the name and its meaning. Each level indents by three characters.
ROW = re.compile(r"^ {4}([|` -]*)(\w+) {2,}\S", flags=re.MULTILINE)


def _tree_in_docstring() -> list[tuple[str, str]]:
    """Return each class in the tree with its parent."""
    path: list[str] = []
    pairs = []
    for bars, name in ROW.findall(errors.__doc__ or ""):
        path[len(bars) // 3 :] = [name]
        pairs.append((name, path[-2] if len(path) > 1 else "Exception"))
    return pairs


def test_the_tree_has_each_class_below_its_base() -> None:
    classes = [value for value in vars(errors).values() if isinstance(value, type)]
    pairs = [(value.__name__, value.__bases__[0].__name__) for value in classes]
    assert sorted(_tree_in_docstring()) == sorted(pairs)
