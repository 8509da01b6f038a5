"""Untrusted text: what a comment may hold, and the HTML it becomes.

Owns every rule about text that people send - name, website, body - and the one path from a body
to HTML: Markdown, then the sanitiser, once, when a comment is written. A preview is the same
call. What must stay true:

- the HTML holds only tags and attributes of the lists below, and parsing and serialising it
  gives the same HTML again, so no browser can read it as something else;
- text is accepted whole or refused, never cut: a cut opens tags and halves characters;
- the time to render a body of the greatest size is bounded.

Names and bodies may lose characters that show nothing (controls, bidi overrides). What would
change what a reader understands is refused.

`RENDERER` and `SANITISER` are stored beside the HTML they made; raise them with every change
of the output, and stored HTML can be rendered again.
"""

import html
import html.parser
import re
import unicodedata
from collections.abc import Iterable

import nh3

from comments import errors
from comments.domain.text import host_names, markdown, role_names

RENDERER = "markdown-2"
SANITISER = "html-3"

# Characters. About three printed pages; the time to render grows with it (docs/settings.md).
MAX_BODY = 10_000
# Characters. Longer than real names, short enough for one line on a phone.
MAX_NAME = 80
# Characters. A Datastore index takes 1,500 bytes.
MAX_WEBSITE = 500
# Characters of HTML that an import may hold for one comment.
MAX_HTML = 100_000
# Tags in it: nested lists take time that grows with their square.
MAX_TAGS = 4_000
# Elements within elements of it. Browsers flatten what is deeper than 512.
MAX_DEPTH = 200
# Bytes of what it becomes: with its source it has to fit a Datastore entity (1 MiB).
MAX_SANITISED = 600_000
# Marks on one letter. Living scripts use up to four; a pile of them covers the lines around it.
MAX_MARKS = 8
# Opening brackets, each of which may start a link, and lines, each of which may start a block.
# What else takes Markdown long is bounded by `markdown`; together the slowest body takes 50 ms.
MAX_BRACKETS = 1_000
MAX_LINES = 2_000
# Rounds until sanitised HTML parses to itself; two do, for what browsers write.
_MAX_ROUNDS = 5

_EMPHASIS = {"b", "del", "em", "i", "ins", "q", "s", "strong", "sub", "sup", "u"}
_PHRASES = {"a", "abbr", "code", "kbd", "samp", "var"}
_BLOCKS = {"blockquote", "br", "h3", "h4", "h5", "h6", "hr", "li", "ol", "p", "pre", "ul"}
_TABLES = {"table", "tbody", "td", "th", "thead", "tr"}
TAGS = frozenset(_EMPHASIS | _PHRASES | _BLOCKS | _TABLES)
ATTRIBUTES = {"a": frozenset({"href", "title"}), "abbr": frozenset({"title"})}
LINK_REL = "nofollow ugc noopener"


_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_REFUSED = re.compile("[\x00\ud800-\udfff]")
# Controls that show nothing, and the bidi characters that reorder what stands around them.
# Marks of direction (U+200E, U+200F, U+061C) stay: right-to-left text needs them.
_DROPPED = re.compile("[\x01-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ufff9-\ufffb]")
# Letters and symbols by category that show nothing: fillers of Hangul and Braille.
_BLANK = frozenset("\u115f\u1160\u3164\uffa0\u2800")
# Absolute http(s) with a host that every parser reads alike: no user information, no encoding.
_WEB_URL = re.compile(
    r"(?P<scheme>(?i:https?))://(?P<host>[^\s\\/?#@:%<>\"'`\[\]{}|^]+|\[[0-9A-Fa-f:.]+\])"
    r"(?::(?P<port>[0-9]{1,5}))?"
    r"(?:[/?#][^\x00-\x1f\x7f-\x9f]*)?"
)
# What opens an attribute or a tag somewhere else when a page is put together carelessly.
_UNSAFE_IN_URL = re.compile(
    # ... and what shows nothing, or reorders the text around it: browsers write it as %E2%80%AE.
    r"[\s\\<>\"'`]"
    r"|[\u00ad\u061c\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]"
)
_TAG = re.compile("<(/?)([a-z0-9]+)")
# The cleaner says of every link how it is related; in HTML only one that leads somewhere may. A
# title would be all that is left of the others, and hold the address that was not to be shown.
_TARGETLESS = re.compile(rf'<a(?: title="[^"]*")? rel="{LINK_REL}">')
_VOID = {"br", "hr"}
_COSTLY = (("[", MAX_BRACKETS, "opening brackets"), ("\n", MAX_LINES, "lines"))


def clean_body(raw: str) -> str:
    """A body as it is stored: line ends as line feeds, characters that show nothing left out.

    Raises:
        errors.BadInput: the body is blank, above a limit, or holds NUL or lone surrogates.
    """
    _refuse("body", raw, _REFUSED)
    if len(raw) > MAX_BODY:
        raise errors.BadInput("body", f"is longer than {MAX_BODY:,} characters", code="too-long")
    text = _DROPPED.sub("", raw.replace("\r\n", "\n").replace("\r", "\n"))
    if not _shows(text):
        raise errors.BadInput("body", "is empty")
    _refuse_piled_marks("body", text)
    for character, limit, what in _COSTLY:
        if text.count(character) > limit:
            raise errors.BadInput("body", f"has more than {limit:,} {what}")
    return text


def clean_name(raw: str, site: Iterable[str] = ()) -> str:
    """A guest's name as it is stored. `site` is what the site is called (`role_names`).

    Raises:
        errors.BadInput: what `tidy_name` refuses, or a name that speaks for the site.
    """
    name = tidy_name(raw)
    if role_names.speaks_for_site(name, site):
        raise errors.BadInput("name", "is reserved", code="reserved-name")
    return name


def tidy_name(raw: str) -> str:
    """A name without the reserved-name rule, for names that were given elsewhere (imports).

    Runs of white space become one blank; bidi overrides are left out.

    Raises:
        errors.BadInput: the name is empty or shows nothing, is above a limit, or holds control
            characters or lone surrogates.
    """
    _refuse("name", raw, _REFUSED)
    _refuse("name", raw.strip(), _CONTROL)
    name = " ".join(unicodedata.normalize("NFC", _DROPPED.sub("", raw)).split())
    if not _shows(name):
        raise errors.BadInput("name", "is empty")
    if len(name) > MAX_NAME:
        raise errors.BadInput("name", f"is longer than {MAX_NAME} characters", code="too-long")
    _refuse_piled_marks("name", name)
    return name


def clean_title(raw: str) -> str:
    """The title of somebody's page, without what shows nothing or reorders what stands around it.

    It may be empty. Whether it is one line of a bearable length is the caller's to see to.
    """
    return _DROPPED.sub("", raw)


def clean_website(raw: str) -> str:
    """A website as it is stored: empty, or an absolute http(s) URL exactly as given.

    Raises:
        errors.BadInput: anything else, including what browsers would repair.
    """
    if raw:
        _check_website(raw)
    return raw


def is_website(stored: str) -> bool:
    """Whether a stored website may be a link: older releases accepted more hosts and ports."""
    try:
        _check_website(stored)
    except errors.BadInput:
        return False
    return True


def _check_website(url: str) -> None:
    _refuse("website", url, _REFUSED)
    if len(url) > MAX_WEBSITE:
        limit = f"is longer than {MAX_WEBSITE} characters"
        raise errors.BadInput("website", limit, code="too-long")
    match = _WEB_URL.fullmatch(url)
    if match is None or _UNSAFE_IN_URL.search(url):
        raise errors.BadInput("website", "is not an absolute http or https URL")
    host_names.canonical(match["host"], "website")
    host_names.check_scripts(match["host"], "website")
    host_names.port(match["scheme"].lower(), match["port"] or "", "website")


def render_markdown(source: str) -> str:
    """The HTML of a body: CommonMark with tables and strikethrough, without HTML and images.

    Headings start at the third level, below those of the page around them.

    Raises:
        errors.BadInput: blocks are nested too deeply to be shown whole, or the markup takes too
            much work (`markdown`).
    """
    _refuse("body", source, _REFUSED)
    return _sanitise(markdown.render(source))


def sanitise_html(source: str) -> str:
    """The HTML of a body that came as HTML from another system.

    Raises:
        errors.BadInput: it is above a limit or not text.
    """
    _refuse("body", source, _REFUSED)
    if len(source) > MAX_HTML:
        raise errors.BadInput("body", f"is longer than {MAX_HTML:,} characters", code="too-long")
    if source.count("<") > MAX_TAGS:
        raise errors.BadInput("body", f"has more than {MAX_TAGS:,} tags")
    cleaned = _sanitise(source)
    if len(cleaned.encode()) > MAX_SANITISED or _depth(cleaned) > MAX_DEPTH:
        raise errors.BadInput("body", "has markup that grows or nests too far")
    return cleaned


def plain_text(source: str) -> str:
    """The text of HTML, a line for each block: for excerpts, titles and mail."""
    parser = _TextOf()
    parser.feed(sanitise_html(source))
    parser.close()
    lines = (" ".join(line.split()) for line in "".join(parser.parts).split("\n"))
    return "\n".join(line for line in lines if line)


def _refuse(field: str, text: str, pattern: re.Pattern[str]) -> None:
    if pattern.search(text):
        raise errors.BadInput(field, "has characters that are not text", code="bad-characters")


def _shows(text: str) -> bool:
    """Whether a reader would see anything: a letter, number, punctuation mark or symbol."""
    return any(unicodedata.category(c)[0] in "LNPS" and c not in _BLANK for c in text)


def _refuse_piled_marks(field: str, text: str) -> None:
    pile = 0
    for character in text:
        kind = unicodedata.category(character)
        if kind[0] == "M":
            pile += 1
        elif kind != "Cf":
            pile = 0
        if pile > MAX_MARKS:
            raise errors.BadInput(field, f"piles more than {MAX_MARKS} marks on one letter")


def _is_web_url(text: str) -> bool:
    return _WEB_URL.fullmatch(text) is not None


def _keep_attribute(tag: str, attribute: str, value: str) -> str | None:
    if (tag, attribute) == ("a", "href") and not _is_web_url(value):
        return None
    return value


def _sanitise(source: str) -> str:
    """Sanitise until the result parses to itself.

    Leaving tags out can bring others together that a parser then takes apart again (`<p>` in
    what was a button in a `<p>`), and HTML that changes when parsed is how sanitisers are passed.
    """
    for _ in range(_MAX_ROUNDS):
        cleaned = _TARGETLESS.sub("<a>", _DROPPED.sub("", _CLEANER.clean(source)))
        if cleaned == source:
            return cleaned
        source = cleaned
    return _CLEANER.clean(html.escape(source, quote=False))


def _depth(cleaned: str) -> int:
    """How deep the elements of sanitised HTML are nested."""
    depth = deepest = 0
    for slash, tag in _TAG.findall(cleaned):
        if tag not in _VOID:
            depth += -1 if slash else 1
            deepest = max(deepest, depth)
    return deepest


class _TextOf(html.parser.HTMLParser):
    """Collects text; the start and end of a block are line ends."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []

    def handle_starttag(
        self,
        tag: str,
        attrs: list[tuple[str, str | None]],  # noqa: ARG002 - the signature of the base class
    ) -> None:
        if tag in _BLOCKS or tag in _TABLES:
            self.parts.append("\n")

    def handle_endtag(self, tag: str) -> None:
        self.handle_starttag(tag, [])

    def handle_data(self, data: str) -> None:
        self.parts.append(data.replace("\n", " "))


_CLEANER = nh3.Cleaner(
    tags=TAGS,
    clean_content_tags={"script", "style", "template", "noscript", "iframe", "math", "svg"},
    # Without a word on "*" it keeps `lang` and `title` of every element.
    attributes={**ATTRIBUTES, "*": frozenset()},
    attribute_filter=_keep_attribute,
    link_rel=LINK_REL,
    url_schemes={"http", "https"},
    url_relative="deny",
)
