"""Every error code is raised and documented and gets all values that its sentence needs."""

import ast
import collections
import dataclasses
import functools
import importlib
import re
from collections.abc import Iterator
from pathlib import Path

from comments import errors
from comments.domain.languages import catalogue, error_texts
from comments.web.http import problems
from tests.support import programs

SENTENCES = catalogue.ENGLISH.entries["errors"]
DOCUMENT = (programs.ROOT / "docs" / "errors.md").read_text()
PACKAGE = programs.ROOT / "comments"
CODE = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
# Placeholders that a sentence may use without a parameter with the same name.
GIVEN = {"seconds": {"wait"}}
# Keyword arguments that become parameters with a different name.
RENAMED = {"retry_after": "seconds"}
OWN_PARAMS = {
    "NotFound": {"value"},
    "RevisionMismatch": {"expected", "current"},
    "TooLarge": {"limit"},
    "Overloaded": {"seconds"},
}
FIXED_FIELD = {"BadCursor", "BadLink", "UnsafeAddress"}


@dataclasses.dataclass(frozen=True)
class Raised:
    """A place in the code that makes an error."""

    where: str
    code: str
    status: int
    params: frozenset[str]
    has_field: bool


def classes() -> dict[str, type[errors.CodedError]]:
    """Return the coded error classes by name, including subclasses in other modules."""
    for path in sorted(PACKAGE.rglob("*.py")):
        if "CodedError" in path.read_text() or "errors.Forbidden)" in path.read_text():
            importlib.import_module(
                ".".join(path.relative_to(programs.ROOT).with_suffix("").parts).removesuffix(
                    ".__init__"
                )
            )
    found: list[type[errors.CodedError]] = [errors.CodedError]
    for each in found:
        found.extend(each.__subclasses__())
    return {each.__name__: each for each in found}


KINDS = classes()


class Reader:
    """A reader that finds the errors that one module makes."""

    def __init__(self, path: Path) -> None:
        self._tree = ast.parse(path.read_text())
        self._name = str(path.relative_to(programs.ROOT))
        self._constants = {
            target.id: node.value
            for node in self._tree.body
            if isinstance(node, ast.Assign)
            for target in node.targets
            if isinstance(target, ast.Name)
        }

    def read(self) -> Iterator[Raised]:
        for node in ast.walk(self._tree):
            if isinstance(node, ast.Call) and called(node) in KINDS:
                yield from self._made(node)
            elif isinstance(node, ast.Call) and called(node) == "document":
                yield from self._document(node)
            elif isinstance(node, ast.Raise) and node.exc is not None:
                for name in names_of(node.exc) & KINDS.keys():  # Raised without arguments
                    yield self._raised(node, name, KINDS[name].code, frozenset())
            elif isinstance(node, ast.Dict):
                yield from self._of_shape(node)

    def _made(self, call: ast.Call) -> Iterator[Raised]:
        name = called(call)
        named = {each.arg for each in call.keywords} - {None, "field"}
        params = {RENAMED.get(str(each), str(each)) for each in named}
        params |= next((OWN_PARAMS[each] for each in ancestry(name) if each in OWN_PARAMS), set())
        given = call.args[1:2] if takes_field(name) else call.args[:1]
        if name in {"Overloaded", "TooLarge", "RevisionMismatch"} or not given:
            codes = {KINDS[name].code}
        elif name == "NotFound":
            codes = {f"{each}-not-found" for each in self._texts(given[0])}
        else:
            codes = self._texts(given[0])
        # Request shapes declare their codes, and these declarations are read separately.
        assert codes or self._name.endswith("field_errors.py"), f"{self._name}:{call.lineno}"
        for code in codes:
            yield self._raised(call, name, code, frozenset(params))

    def _raised(self, node: ast.AST, name: str, code: str, params: frozenset[str]) -> Raised:
        line = getattr(node, "lineno", 0)
        has_field = issubclass(KINDS[name], errors.BadInput | errors.TooLarge)
        status = problems.status_of(KINDS[name].__new__(KINDS[name]))
        return Raised(f"{self._name}:{line}", code, status, params, has_field)

    def _document(self, call: ast.Call) -> Iterator[Raised]:
        """Yield documents made without an error: `problems.document(421, "other-host", "Host")`."""
        if len(call.args) > 1 and isinstance(call.args[0], ast.Constant):
            for code in self._texts(call.args[1]):
                status = call.args[0].value
                yield Raised(self._name, code, int(str(status)), frozenset(), len(call.args) > 2)

    def _of_shape(self, node: ast.Dict) -> Iterator[Raised]:
        """Yield the codes that the fields of a request shape declare."""
        for key, value in zip(node.keys, node.values, strict=True):
            if isinstance(key, ast.Attribute) and key.attr == "CODE":
                for code in self._texts(value):
                    yield Raised(self._name, code, 400, frozenset(), has_field=True)

    def _texts(self, node: ast.expr) -> set[str]:
        """Return an expression's possible values: literals and the module's text constants."""
        if isinstance(node, ast.IfExp):
            return self._texts(node.body) | self._texts(node.orelse)
        if isinstance(node, ast.Subscript):
            return self._texts(node.value)
        found: set[str] = set()
        for each in ast.walk(node):
            if isinstance(each, ast.Constant) and isinstance(each.value, str):
                found.add(each.value)
            elif isinstance(each, ast.Name) and each.id in self._constants:
                found |= self._texts(values_of(self._constants[each.id]))
        return found


def called(call: ast.Call) -> str:
    return last(call.func)


def last(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def names_of(node: ast.expr) -> set[str]:
    return {last(node.body), last(node.orelse)} if isinstance(node, ast.IfExp) else {last(node)}


def values_of(node: ast.expr) -> ast.expr:
    if isinstance(node, ast.Dict):
        return ast.Tuple(node.values, ast.Load())
    return node


def ancestry(name: str) -> list[str]:
    return [each.__name__ for each in KINDS[name].__mro__]


def takes_field(name: str) -> bool:
    return "BadInput" in ancestry(name) and not FIXED_FIELD & set(ancestry(name))


@functools.cache
def every_raised() -> list[Raised]:
    found = [
        each
        for path in sorted(PACKAGE.rglob("*.py"))
        # This module contains the error classes, which only pass on codes.
        if path.name != "errors.py"
        for each in Reader(path).read()
    ]
    framework = ((status, code) for status, code in problems._FLASK_CODES.items())
    found += [
        Raised("Flask", code, status, frozenset(), has_field=False) for status, code in framework
    ]
    return [*found, Raised("problems", "internal", 500, frozenset(), has_field=False)]


def documented() -> dict[str, tuple[int, set[str]]]:
    rows = re.findall(r"^\| `([a-z0-9-]+)` \| (\d+) \| [^|]+ \| (.*) \|$", DOCUMENT, re.MULTILINE)
    assert len(rows) == len({code for code, _, _ in rows})
    return {code: (int(status), set(re.findall("`(.+?)`", names))) for code, status, names in rows}


def test_every_code_is_in_the_table_and_no_other() -> None:
    assert documented().keys() == {each.code for each in every_raised()}


def test_every_code_has_a_sentence_and_no_other() -> None:
    assert {name.partition(".")[0] for name in SENTENCES} == {each.code for each in every_raised()}


def by_code() -> dict[str, list[Raised]]:
    found = collections.defaultdict(list)
    for each in every_raised():
        found[each.code].append(each)
    return found


def test_the_table_says_status_and_parameters() -> None:
    raised = by_code()
    for code, (status, params) in documented().items():
        assert {each.status for each in raised[code]} == {status}, raised[code]
        assert set().union(*(each.params for each in raised[code])) == params, raised[code]


def test_every_sentence_is_one() -> None:
    for sentence in map(str, SENTENCES.values()):
        assert sentence[0].isupper() or sentence.startswith(("{", "limit", "since", '"')), sentence
        assert sentence.endswith((".", "```.", '".')), sentence


def test_every_placeholder_is_given_by_every_raiser() -> None:
    raised = by_code()
    for name, sentence in SENTENCES.items():
        for each in raised[name.partition(".")[0]]:
            given = set(each.params) | ({"field"} if each.has_field else set())
            given |= set().union(*(GIVEN.get(param, set()) for param in each.params))
            assert set(re.findall(r"\{(\w+)\}", str(sentence))) <= given, each


def test_codes_are_plain_words() -> None:
    assert all(CODE.fullmatch(each.code) for each in every_raised())


def test_a_sentence_of_one_field_goes_before_that_of_the_code() -> None:
    assert error_texts.of_code("required", "name") == "Enter your name."
    assert error_texts.of_code("required", "url") == "url is required."


def test_numbers_and_durations_are_written_out() -> None:
    range_ = errors.BadInput("limit", "out-of-range", minimum=1, maximum=20_000)
    assert error_texts.sentence(range_) == "limit must be between 1 and 20,000."
    for seconds, wait in (
        (1, "1 second"),
        (59, "59 seconds"),
        (61, "2 minutes"),
        (7200, "2 hours"),
    ):
        busy = errors.Overloaded("any", retry_after=seconds)
        assert error_texts.sentence(busy) == f"The service is busy. Try again in {wait}."


def test_errors_for_operators_say_their_message() -> None:
    assert error_texts.sentence(errors.Misconfigured("SECRET is not set.")) == "SECRET is not set."
    shown = errors.BadInput("limit", "out-of-range", minimum=1, maximum=2)
    assert str(shown) == "limit: out-of-range (minimum=1, maximum=2)"


def test_an_error_can_be_about_another_field() -> None:
    other = errors.BadInput("page", "too-many-bytes", limit=2_000).about("url")
    assert (other.field, other.code, other.params) == ("url", "too-many-bytes", {"limit": 2_000})
