"""Each text that people read is in the catalogue exactly once, and every catalogue text is used.

The lists below name the places that the tests check. Templates, scripts and modules in these places
contain no text; they name keys in the catalogue (`comments/domain/languages`).
"""

import ast
import functools
import html.parser
import itertools
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import jinja2
from jinja2 import nodes

from comments.domain.languages import catalogue

COMMENTS = Path(__file__).parents[3] / "comments"
WIDGET = COMMENTS.parent / "widget"
# Folders in comments/web/templates.
TEMPLATES = ("admin", "public")
# Modules below these folders of widget, each with the catalogue surface of its functions.
SCRIPTS: Mapping[str, Mapping[str, str]] = {
    "pages": {"console-texts.js": "admin"},
    "source": {"words.js": "widget", "writertexts.js": "widget-writing"},
}
# Folders and files in comments.
PYTHON = (
    "web/admin",
    "web/embedding",
    "web/mailed",
    "web/rendering",
    "web/service",
    "web/sign_in",
    "notifications/mail/compose.py",
    "notifications/mail/comment_mail.py",
    "notifications/double_opt_in.py",
)
# The first parts of keys that are built at run time, with the possible second parts.
DYNAMIC = {
    "mail.address-": "a mail with a link (compose.py)",
    "mail.confirm-": "a mail with a link (compose.py)",
    "mail.invitation-": "a mail with a link (compose.py)",
    "mail.sign-in-": "a mail with a link (compose.py)",
    "reasons.": "a condition of a rule, a policy, or reports (reasons.py, decisionbox.js)",
    "errors.": "an error's code, and perhaps the field (error_texts.py)",
    "widget.failed": "what the entry says if the strings are missing (widget/build.mjs)",
    "widget-writing.error-": "an error's code or status (problems.js)",
    "widget-writing.field-": "an error's field (problems.js)",
}
# Literals that no one reads or that are the same in every language.
TECHNICAL = {
    # HTML, CSS and HTTP.
    "nofollow ugc noopener", 'link[rel~="canonical"][href]', "Authorization", "Bearer \0", "GET",
    "[role=alert] button, h2", "input, textarea", "color-mix(in srgb, currentColor, currentColor)",
    "(pointer: coarse)", "(prefers-color-scheme: dark)", ".ft-sign-in button",
    ".ft-acts button", ".ft-pick input", "input, textarea, select, dialog, [contenteditable]",
    # A command, as its user types it
    "flatthread site",
    # Keys
    "Enter", "Escape",
    "Arab", "Hebr", "Thaa",
    "Cookie", "Lax", "Link", "Origin", "Referer", "Strict", "View",
    "public, max-age=300", "public, max-age=31536000, immutable",
    # Mail, and the name of a signature.
    "All", "Date", "From", "References", "Subject", "To", "flatthread unsubscribe 1",
    # Schema.org
    "Comment", "Deleted", "Person",
    # Names
    "Flatthread",
}  # fmt: skip

# The functions that return texts for stored values: `label("admin.status", status)`.
LABELS = {"choices", "label"}

SURFACES = catalogue.ENGLISH.entries
TEXTS = {
    f"{surface}.{name}": entry
    for surface, entries in SURFACES.items()
    for name, entry in entries.items()
}
KEY = re.compile(rf"({'|'.join(SURFACES)})\.[a-z][a-z0-9-]*")
PLACEHOLDER = re.compile(r"\{(\w+)\}")
CLASSES = re.compile(r"(ft-\S* ?)+")
MARKUP = re.compile(r"<[!/a-z][^>]*>?")
MEDIA_TYPE = re.compile(r"[a-z]+/[a-z+]+; charset=utf-8")
LETTER = re.compile(r"[^\W\d_]")
SENTENCE = re.compile(r"[^\W\d_]+[,.:;]? +[^\W\d_]|^[A-Z][a-z]+[.:!?]?$")


class Use(NamedTuple):
    """A use of a catalogue key. `values` names the filled placeholders, or is None if unknown."""

    place: str
    key: str
    values: frozenset[str] | None = None
    is_prefix: bool = False


class Stray(NamedTuple):
    """A literal that people may read."""

    place: str
    text: str


# The catalogue


def _forms(entry: catalogue.Entry) -> list[str]:
    return [entry] if isinstance(entry, str) else list(entry.values())


def _placeholders(entry: catalogue.Entry) -> frozenset[str]:
    return frozenset(itertools.chain.from_iterable(map(PLACEHOLDER.findall, _forms(entry))))


def test_a_text_holds_no_markup() -> None:
    """Values may be markup. The surrounding text is escaped or put into a document as text."""
    forms = itertools.chain.from_iterable(map(_forms, TEXTS.values()))
    assert [each for each in forms if re.search(r"<|&\w+;", each)] == []


# Templates


def _templates() -> Iterator[tuple[str, nodes.Template]]:
    environment = jinja2.Environment(autoescape=True)
    for folder in TEMPLATES:
        for file in sorted((COMMENTS / "web" / "templates" / folder).glob("*.html")):
            yield f"{folder}/{file.name}", environment.parse(file.read_text("utf-8"))


def _uses_in_templates() -> Iterator[Use]:
    for place, tree in _templates():
        for call in tree.find_all(nodes.Call):
            name = call.node.name if isinstance(call.node, nodes.Name) else ""
            given = None
            if call.dyn_kwargs is None and name == "t":
                given = frozenset(each.key for each in call.kwargs)
            for key, is_prefix in _template_keys(call.args[0]) if name in {"t", *LABELS} else ():
                use = Use(place, key, given, is_prefix)
                yield _of_stored_value(use) if name in LABELS else use


def _template_keys(node: nodes.Expr) -> Iterator[tuple[str, bool]]:
    match node:
        case nodes.Const():
            yield node.value, False
        case nodes.CondExpr():
            yield from _template_keys(node.expr1)
            if node.expr2 is not None:
                yield from _template_keys(node.expr2)
        case nodes.Concat():
            yield from ((key, True) for key, _ in _template_keys(node.nodes[0]))
        case nodes.Add():
            yield from ((key, True) for key, _ in _template_keys(node.left))


def _document(node: nodes.Node) -> Iterator[str]:
    """Yield a template's HTML with all branches, replacing each value by `\\0`."""
    if isinstance(node, nodes.TemplateData):
        yield node.data
    elif isinstance(node, nodes.Output):
        for each in node.nodes:
            yield from _document(each) if isinstance(each, nodes.TemplateData) else _shown(each)
    else:
        for child in node.iter_child_nodes():
            if not isinstance(child, nodes.Expr):
                yield from _document(child)


def _shown(node: nodes.Expr) -> Iterator[str]:
    """Yield the literals that an expression may show."""
    match node:
        case nodes.Const():
            yield str(node.value)
        case nodes.CondExpr():
            yield from _shown(node.expr1)
            yield from _shown(node.expr2) if node.expr2 is not None else ()
        case nodes.Or() | nodes.And() | nodes.Add():
            yield from _shown(node.left)
            yield from _shown(node.right)
        case nodes.Concat():
            for each in node.nodes:
                yield from _shown(each)
        case nodes.Filter() if node.node is not None:
            yield from _shown(node.node)
        case _:
            yield "\0"


class _Document(html.parser.HTMLParser):
    """A parser that collects the text that people read in a document."""

    READ = frozenset({"title", "alt", "aria-label", "aria-description", "placeholder", "label"})
    CODE = frozenset({"code", "kbd", "pre", "script", "style"})
    BUTTONS = frozenset({"submit", "reset", "button"})

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self._code = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._code += tag in self.CODE
        values = dict(attrs)
        self.found += [value for name, value in attrs if name in self.READ and value]
        if tag == "meta" and values.get("name") == "description":
            self.found.append(values.get("content") or "")
        if tag == "input" and values.get("type") in self.BUTTONS:
            self.found.append(values.get("value") or "")

    def handle_endtag(self, tag: str) -> None:
        self._code -= tag in self.CODE

    def handle_data(self, data: str) -> None:
        if not self._code:
            self.found.append(data)


def test_templates_hold_no_text() -> None:
    strays = []
    for place, tree in _templates():
        document = _Document()
        document.feed("".join(_document(tree)))
        strays += [Stray(place, text) for text in _read(document.found, LETTER)]
    assert strays == []


def _read(texts: Iterable[str], pattern: re.Pattern[str]) -> Iterator[str]:
    for text in (MARKUP.sub("", each).strip() for each in texts):
        is_technical = text in TECHNICAL or CLASSES.fullmatch(text) or MEDIA_TYPE.fullmatch(text)
        if pattern.search(text) and not is_technical:
            yield text


# Scripts

STRING = re.compile(r'"((?:[^"\\\n]|\\.)*)"|`((?:[^`\\]|\\.)*)`')
COMMENT = re.compile(r"/\*.*?\*/|(?:^|(?<=[\s;{}(),]))//[^\n]*", re.DOTALL | re.MULTILINE)
IMPORT = re.compile(r'import \{([^}]*)\} from "\.[^"]*/([^"/]+)";')


def _scripts() -> Iterator[tuple[str, str, Mapping[str, str]]]:
    """Yield scripts without comments, each with the surfaces of functions that fill in texts."""
    for folder, modules in SCRIPTS.items():
        for file in sorted((WIDGET / folder).rglob("*.js")):
            source = COMMENT.sub("", file.read_text("utf-8"))
            functions = {
                name.rpartition(" as ")[2].strip(): modules[module]
                for names, module in IMPORT.findall(source)
                if module in modules
                for name in names.split(",")
                if name.split(" as ")[0].strip() in {"t", "parts"}
            }
            yield f"{folder}/{file.name}", source, functions


def _uses_in_scripts() -> Iterator[Use]:
    for place, source, functions in _scripts():
        for name, surface in functions.items():
            for call in re.finditer(rf"(?<!\w)(?<!\w\.){name}\(", source):
                first, *more = _arguments(source[call.end() :])
                is_prefix = first.startswith("`")
                key = first[1:].partition("${")[0] if is_prefix else first.strip('"')
                assert first[0] in '"`', (place, first)
                yield Use(place, f"{surface}.{key}", _names(more), is_prefix)


def _arguments(source: str) -> list[str]:
    """Split the text after an opening bracket at the commas, up to the closing bracket."""
    found, depth, start, at = [], 0, 0, 0
    while at < len(source):
        string = STRING.match(source, at)
        if string:
            at = string.end()
            continue
        depth += (source[at] in "([{") - (source[at] in ")]}")
        if depth < 0 or (depth == 0 and source[at] == ","):
            found.append(source[start:at].strip())
            start = at + 1
        if depth < 0:
            break
        at += 1
    return [each for each in found if each]


def _names(arguments: list[str]) -> frozenset[str]:
    """Return the property names in an object literal."""
    if not arguments:
        return frozenset()
    inside = _arguments(arguments[0].removeprefix("{"))
    return frozenset(re.split(r"\W", each)[0] for each in inside)


def test_scripts_hold_no_text() -> None:
    strays = []
    for place, source, _ in _scripts():
        literals = [one or re.sub(r"\$\{[^}]*\}", "\0", two) for one, two in STRING.findall(source)]
        strays += [Stray(place, text) for text in _read(literals, SENTENCE)]
    assert strays == []


# Python


def _modules(places: Iterable[str]) -> Iterator[tuple[str, ast.Module]]:
    for place in places:
        path = COMMENTS / place
        for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
            yield str(file.relative_to(COMMENTS)), ast.parse(file.read_text("utf-8"))


def _uses_in_python() -> Iterator[Use]:
    for place, tree in _modules([""]):
        checked = any(place.startswith(each) for each in PYTHON)
        ignored: set[ast.AST] = set()
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and node.args:
                if _called(node) == "url_for":
                    ignored.add(node.args[0])
                if use := _use_in_call(node):
                    ignored |= set(ast.walk(node.args[0]))
                    yield use._replace(place=place)
            elif node not in ignored:
                use = _key(node)
                if use and (checked or use.key in TEXTS):
                    ignored |= set(ast.walk(node))
                    yield use._replace(place=place)


def _use_in_call(call: ast.Call) -> Use | None:
    use = _key(call.args[0])
    if use is None or _called(call) not in {"t", "text", "fill", *LABELS}:
        return None
    if _called(call) in LABELS:
        return _of_stored_value(use)
    is_known = _called(call) != "fill" and all(each.arg for each in call.keywords)
    given = frozenset(str(each.arg) for each in call.keywords if each.arg)
    return use._replace(values=given if is_known else None)


def _of_stored_value(use: Use) -> Use:
    return use._replace(key=f"{use.key}-", is_prefix=True)


def _called(call: ast.Call) -> str:
    return getattr(call.func, "attr", getattr(call.func, "id", ""))


def _key(node: ast.AST) -> Use | None:
    match node:
        case ast.Constant(value=str(text)) if KEY.fullmatch(text):
            return Use("", text)
        case ast.JoinedStr(values=[ast.Constant(value=str(text)), *_]) if KEY.fullmatch(text):
            return Use("", text, is_prefix=True)
    return None


def _silent(tree: ast.Module) -> set[ast.AST]:
    """Return the literals that no reader sees: in docstrings, log lines and errors."""
    found: set[ast.AST] = set()
    for node in ast.walk(tree):
        match node:
            case ast.Expr(value=ast.Constant() as value):
                found.add(value)
            case ast.Raise():
                found |= set(ast.walk(node))
            case ast.Call(func=ast.Attribute(value=ast.Name(id="_log" | "errors" | "problems"))):
                found |= set(ast.walk(node))
    return found


def test_modules_hold_no_text() -> None:
    strays = []
    for place, tree in _modules(PYTHON):
        silent = _silent(tree)
        literals = [
            node.value
            for node in ast.walk(tree)
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in silent
        ]
        strays += [Stray(place, text) for text in _read(literals, SENTENCE)]
    assert strays == []


# All together


@functools.cache
def _uses() -> list[Use]:
    return [*_uses_in_templates(), *_uses_in_scripts(), *_uses_in_python()]


def _meant(use: Use) -> list[str]:
    if use.is_prefix:
        return [key for key in TEXTS if key.startswith(use.key)]
    return [use.key] if use.key in TEXTS else []


def test_no_file_of_a_language_has_a_key_twice() -> None:
    def check(pairs: list[tuple[str, object]]) -> dict[str, object]:
        twice = {key for key, _ in pairs if [other for other, _ in pairs].count(key) > 1}
        assert not twice, f"{file}: the last of several texts replaces the others: {twice}"
        return dict(pairs)

    for file in (COMMENTS / "domain" / "languages").glob("*/*.json"):
        json.loads(file.read_text("utf-8"), object_pairs_hook=check)


def test_every_key_exists() -> None:
    assert [use for use in _uses() if not _meant(use)] == []


def test_every_text_is_used() -> None:
    used = set(itertools.chain.from_iterable(map(_meant, _uses())))
    assert [key for key in TEXTS if key not in used and not key.startswith(tuple(DYNAMIC))] == []


def test_every_text_is_given_its_placeholders() -> None:
    wrong = []
    for use in _uses():
        for key in _meant(use) if use.values is not None else ():
            # A plural form need not show the number that selects it.
            chooses = set() if isinstance(TEXTS[key], str) else {"count"}
            wanted = _placeholders(TEXTS[key]) | chooses
            if use.values != wanted:
                wrong.append((use, sorted(wanted)))
    assert wrong == []
