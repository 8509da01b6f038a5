"""Resolve the prefixes of names in an XML file, even if the file does not declare them (pure).

The parser's own resolution refuses a file with an undeclared prefix. Real exports have some: old
exports of WordPress.com use `atom:` without a declaration. An undeclared prefix has its usual
namespace if the format has one; otherwise, its elements and attributes are ignored.
"""

from collections.abc import Mapping

_DECLARATION = "xmlns"
_SHOWN = 40  # Characters of a prefix in a report.


class Namespaces:
    """The declarations of the open elements. `usual` contains namespaces by their usual prefix."""

    def __init__(self, usual: Mapping[str, str]) -> None:
        self._usual = usual
        self._scopes = [{"": "", "xml": "xml", _DECLARATION: _DECLARATION}]

    def enter(self, attributes: Mapping[str, str]) -> None:
        """Read the declarations of an element that begins."""
        scope = self._scopes[-1]
        for name, value in attributes.items():
            kind, _, prefix = name.partition(":")
            if kind == _DECLARATION:
                scope = {**scope, prefix: value}
        self._scopes.append(scope)

    def leave(self) -> None:
        """Forget the declarations of the innermost element."""
        self._scopes.pop()

    def qualified(self, name: str, *, is_attribute: bool) -> tuple[str, str]:
        """Return a name as "namespace local", and the fault of its prefix, or "".

        Names without a namespace stay as they are. Names whose prefix is unknown become "".
        """
        prefix, _, local = name.rpartition(":")
        if is_attribute and not prefix:
            return name, ""
        namespace = self._scopes[-1].get(prefix)
        if namespace or namespace == prefix == "":
            return f"{namespace} {local}" if namespace else local, ""
        shown = prefix[:_SHOWN]
        if prefix in self._usual:
            fault = f"undeclared prefix {shown}:, read with its usual namespace"
            return f"{self._usual[prefix]} {local}", fault
        return "", f"undeclared prefix {shown}:, whose elements and attributes were ignored"
