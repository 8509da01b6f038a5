"""Run regular expressions and parsers on texts that would keep badly written ones busy for hours.

python -m tests.support.slow_matches [PATTERN]

Every text has a limit on processor time: if code needs quadratic time or more for a long text, a
signal ends the run. The program prints how many patterns, functions and requests it has tried. With
a PATTERN, it tries only that pattern, which shows that the limit ends the run.

The program tries:

- every module-level regular expression in the package, found automatically, with longer texts than
  any caller can send;
- for every route in `every_route`, every field, parameter and header that a caller may set, with
  the maximum length, whether our code or a library parses it;
- the functions below, with texts of the maximum length that they accept.
"""

import contextlib
import dataclasses
import importlib
import itertools
import pkgutil
import re
import signal
import sys
from collections.abc import Callable, Iterator

import comments
from comments import app as apps
from comments import config, errors
from comments.domain import categories
from comments.domain.ids import thread_ids
from comments.domain.text import cleaning, imported_html, rendering, sanitizing
from comments.domain.text.addresses import mail_addresses
from comments.moderation.policy import rules
from comments.notifications.mail import compose, plain_words
from comments.web.embedding import json_ld
from datastore_emulator import inprocess
from tests.conftest import ROOT
from tests.support import datastores, every_route
from tests.support.people.account_holders import SECRET

LONG = 30_000
LIMIT = 1.0  # Seconds of processor time for a text; the slowest needs about a twentieth
# Pairs (repeated text, end): everything before the end matches, but the whole text does not.
ENDINGS = [
    ("a", "!"), ("a", "\x00"), (" ", "x"), ("\t", "x"), ("\n", "x"), ("a ", "\n"), ("0", "x"),
    ("1.", "x"), (".", "@"), ("a.", "@"), ("a@", "b"), ("-", "_"), ("%", "x"), ("%a", "%"),
    ("%2F", "%"), ("/", "\\"), ("/../", "."), ("\\", "'"), ('\\"', "'"), ('"', "a"), ("'", '"'),
    ("<", ">"), ("<a", "<"), ("</", ">"), ("<!--", "-"), ("&", ";"), ("&#", "x"), ("&amp", "&"),
    ("[", "]"), ("](", ")"), ("![", "]"), ("{", "}"), ("[{", "]"), (",", ";"), (", ", "q"),
    (";q=", "0"), ("=", "&"), ("a=b&", "a"), ("_", "-"), ("*", "a"), ("**a", "*"), ("~~", "~"),
    ("`", "a"), ("`a", "``"), ("> ", "a"), ("- ", "a"), ("|", "-"), ("|a\n|-\n", "|"), ("#", "a"),
    ("http://", "x"), ("www.", "a"), ("http://a.", "\\"), ("c.", "a"), ("\u0301", "a"),
    ("a\u0301", "!"), ("\u200b", "a"), ("\ufdfa", "a"), ("\u3316", "a"), ("\u0130", "a"),
    ('W/"', "x"), ("Bearer ", " "), ("1:", "]"), (":", "]"), ("[::", "%"), ("xn--", "."),
    ("eyJ", "."), ("a,", " "),
]  # fmt: skip


def texts(size: int) -> Iterator[str]:
    """Yield one text of each kind, `size` characters long."""
    for repeated, end in ENDINGS:
        yield (repeated * (size // len(repeated) + 1))[: size - len(end)] + end


def begin_limit() -> None:
    """Limit the processor time until the next call; the signal ends even a running match."""
    signal.setitimer(signal.ITIMER_PROF, LIMIT)


def patterns() -> dict[str, re.Pattern[str] | re.Pattern[bytes]]:
    """Return the package's module-level regular expressions."""
    found = {}
    for each in pkgutil.walk_packages(comments.__path__, "comments."):
        module = importlib.import_module(each.name)
        for name, value in vars(module).items():
            if isinstance(value, re.Pattern):
                found[f"{each.name}.{name}"] = value
    return found


def match(pattern: re.Pattern[str] | re.Pattern[bytes], text: str) -> None:
    """Apply a pattern to a text in every way that the package does.

    To find all matches includes the work of `search`, which finds the first.
    """
    given = text.encode() if isinstance(pattern.pattern, bytes) else text
    begin_limit()
    pattern.fullmatch(given)  # type: ignore[arg-type]
    for _ in pattern.finditer(given):  # type: ignore[arg-type]
        pass


def functions() -> dict[str, tuple[Callable[[str], object], int]]:
    """Return the functions that parse a text, each with the maximum length that it accepts."""
    words = tuple(f"*word{number}*" for number in range(rules.MOST_PATTERNS))
    book = [
        rules.Rule(id=f"r{number}", action=rules.Action.HOLD, **{field: words})  # type: ignore[arg-type]
        for number, field in enumerate(("words", "names"))
    ]
    book += [rules.Rule(id="s", action=rules.Action.SPAM, scripts=("latin", "thai"), links=3)]
    body = cleaning.MAX_BODY
    return {
        "a body": (lambda text: rendering.render_markdown(cleaning.clean_body(text)), body),
        "a name": (cleaning.clean_name, cleaning.MAX_NAME),
        "a long name": (cleaning.clean_name, LONG),
        "a website": (cleaning.clean_website, cleaning.MAX_WEBSITE),
        "HTML of an import": (imported_html.convert, sanitizing.MAX_HTML),
        "plain text": (sanitizing.plain_text, sanitizing.MAX_HTML),
        "linked data": (
            lambda text: json_ld.plain(sanitizing.sanitise_html(text)),
            sanitizing.MAX_HTML // 2,
        ),
        "an address": (mail_addresses.check, mail_addresses.LONGEST),
        "words of a mail": (plain_words.words, body),
        "a line of a mail": (plain_words.line, body),
        "a link of a mail": (compose.is_link, body),
        "a page": (thread_ids.canonical_page, LONG),
        "a thread": (thread_ids.canonical_id, LONG),
        "a category": (categories.canonical, LONG),
        "rules": (lambda text: rules.judge(book, rules.RuleSubject(text, text, text, text)), body),
        "a text's likeness": (rules.likeness, body),
    }


def _tried(read: Callable[[str], object], text: str) -> None:
    begin_limit()
    with contextlib.suppress(errors.FlatthreadError, ValueError):  # An error is a valid outcome
        read(text)


HEADERS = (
    "Authorization", "Idempotency-Key", "If-Match", "If-None-Match", "Accept", "Accept-Encoding",
    "Accept-Language", "Cookie", "X-Forwarded-For", "Origin", "Sec-Fetch-Site", "Range",
    "Content-Type", "Cache-Control",
)  # fmt: skip


def over_http() -> int:
    """Try every field, parameter and header of every route; return the number of requests."""
    count = 0
    with inprocess.open_engine(None, indexes=ROOT / "index.yaml") as engine:
        datastore = datastores.Embedded(engine)
        store = datastore.connect()
        settings = config.Settings(secret=SECRET)
        with store.context():
            service = every_route.AllRoles(datastore, store, apps.create_app(settings, store))
            comment = service.comment().id
            clients = {caller: service.client(caller) for caller in ("owner", "author")}
            service.client = clients.__getitem__  # type: ignore[assignment]
            for row, caller in _asked(every_route.ROWS):
                begin_limit()
                answer = service.ask(row, caller, comment)
                assert answer.status_code < 500, (row, answer.status_code)
                count += 1
                if "sign-out" in row.rule or answer.headers.get("Set-Cookie"):
                    clients["owner"] = every_route.AllRoles.client(service, "owner")
            client, path = service.app.test_client(), f"/api/v1/comments/{comment}"
            for name in HEADERS:
                for text in itertools.islice(filter(_may_be_sent, texts(8_000)), 0, None, 2):
                    for verb in (client.patch, client.get):
                        begin_limit()
                        answer = verb(path, data=b"{}", headers={name: text})
                        assert answer.status_code < 500, (name, text[:20])
                        count += 1
    return count


def _may_be_sent(text: str) -> bool:
    return text.isprintable() and text.isascii()


def _asked(rows: list[every_route.Row]) -> Iterator[tuple[every_route.Row, str]]:
    """Yield each route's fields with each text and a caller whose request reaches the parser."""
    for row in rows:
        caller = "owner" if row.rule.startswith("/admin") else "author"
        for name in row.json or ():
            for text in itertools.islice(texts(12_000), 0, None, 2):
                yield dataclasses.replace(row, json={**(row.json or {}), name: text}), caller
        # One parser reads all forms and queries, and the functions above cover their values.
        for name in row.form or ():
            for text in itertools.islice(texts(1_500), 0, None, 20):
                yield dataclasses.replace(row, form={**(row.form or {}), name: text}), caller
        for name in row.query:
            for text in itertools.islice(texts(2_500), 0, None, 6):
                yield dataclasses.replace(row, query={**row.query, name: text}), caller


def main(planted: str = "") -> None:
    """Give every text to every pattern, function and route."""
    if planted:
        for text in texts(LONG):
            match(re.compile(planted), text)
        return
    found = patterns()
    for pattern in set(found.values()):
        for text in texts(LONG):
            match(pattern, text)
    reading = functions()
    for read, size in reading.values():
        for text in texts(size):
            _tried(read, text)
    sys.stdout.write(f"{len(found)} {len(reading)} {over_http()}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
