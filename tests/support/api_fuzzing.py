"""Set up a service with stored data that schemathesis calls with generated requests.

Generated values hardly ever name something that exists. Therefore, this module replaces most valid
values that schemathesis generates by existing ones: a site, a comment, a thread, a cursor, a name,
or the token of a caller with permission. The module keeps values that are meant to be invalid.
"""

import contextlib
import dataclasses
import hashlib
import re
import threading
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

import flask
import msgspec
from schemathesis import Case
from schemathesis.core.parameters import ParameterLocation
from werkzeug import serving

from comments import app as apps
from comments import config
from comments.accounts.links import email_login
from comments.domain import records
from comments.domain.counters import declared_counters
from comments.domain.crypto import encryption
from comments.limits.site_request import SiteRequest
from comments.posting import admission, new_comment
from comments.sites import site_settings
from comments.store import connection
from comments.tree.counters.declared import declarations
from comments.web.api.callers import api_tokens
from comments.web.api.description import operations
from tests.support.people import account_holders, moderators, site_tokens
from tests.support.threads import sample_threads

SECRET = sample_threads.SETTINGS.secret
OWN, VOTER, LEAVER = "g:own", "g:voter", "g:leaver"
SPEAKERS = {"eraseAuthor": LEAVER, "vote": VOTER, "withdrawVote": VOTER}
THREADS = ("t", "t", "other", "none")
IN_THREAD = {each.name for each in operations.table().operations if "thread" in str(each.extra)}
REPORTS = {each.name for each in operations.table().operations if each.is_table} | {"listCounters"}
AUDIENCES = '{"both": {"all": [{"thread": "t"}, {"site": true}]}}'
MOSTLY = (True, True, True, False)
_ID = re.compile("[a-z2-7]{26}")
_SITE = re.compile("[a-z0-9-]{1,63}")
_PLENTY = 60  # Number of the caller's comments that calls edit or retract
_CODES = 12


@dataclasses.dataclass
class Stocked:
    """The application and the ids, cursors and tokens of its stored data."""

    app: flask.Flask
    own: list[str]  # Comments to edit.
    last: list[str]  # Comments to retract.
    others: list[str]
    cursors: list[str]
    codes: list[tuple[str, str]]  # Pairs of key and code; each pair signs in once.
    signed: str  # A token that the site signed for one of its readers.
    moderating: str  # A moderator's token, for the calls that change nothing.

    def fill(self, case: Case) -> None:
        """Replace generated valid values by existing ones."""
        name = case.operation.definition.raw["operationId"]
        if _is_valid(case, ParameterLocation.PATH):
            self._fill_path(name, case.path_parameters)
        if _is_valid(case, ParameterLocation.QUERY):
            self._fill_query(name, case.query)
        if _is_valid(case, ParameterLocation.BODY) and isinstance(case.body, dict):
            usual = self._body(name, case)
            if chosen(case.body, MOSTLY):
                case.body = {field: usual.get(field, case.body[field]) for field in case.body}

    def _fill_path(self, name: str, path: dict[str, Any]) -> None:
        if _SITE.fullmatch(str(path.get("site"))):
            path["site"] = chosen(path["site"], ("demo", "demo", "demo", path["site"]))
        if _ID.fullmatch(str(path.get("id"))):
            known = {"editComment": self.own, "retractComment": self.last}.get(name, self.others)
            path["id"] = chosen(path["id"], (*known, *self.others[:3], path["id"]))

    def _fill_query(self, name: str, query: dict[str, Any]) -> None:
        if name in IN_THREAD and chosen(query, MOSTLY):
            query["thread"] = chosen(query, THREADS)
            query.pop("page", None)
        if "cursor" in query:
            query["cursor"] = chosen(query, (*self.cursors, query["cursor"]))
        if "audiences" in query:
            query["audiences"] = chosen(query, (AUDIENCES, AUDIENCES, query["audiences"]))
        if "counter" in query:
            query["counter"] = chosen(query, ("votes", "votes", query["counter"]))
        for field in {"around", "parent"} & query.keys():
            query[field] = chosen(query, (*self.others, query[field]))

    def _body(self, name: str, case: Case) -> dict[str, Any]:
        key, code = chosen(case.body, self.codes)
        return {
            "name": "Ann", "body": f"Hello {chosen(case.body, range(1_000))}", "website": "",
            "email": f"ann{chosen(case.body, range(1_000))}@example.org", "title": "T", "url": "",
            "parent": chosen(case.body, (None, *self.others)), "categories": [], "proof": "",
            "subject": "", "token": self.signed, "key": key, "code": code,
            "thread": True if name == "subscribe" else "", "threads": ["t", "other"],
            "pages": ["https://demo.example/"],
        }  # fmt: skip

    def token(self, case: Case) -> str:
        """Return the token of a caller with permission."""
        name = case.operation.definition.raw["operationId"]
        if name in REPORTS:
            return self.moderating
        speaker = SPEAKERS.get(name, OWN)
        return api_tokens.sign(api_tokens.Guest("demo", speaker), secret=SECRET)


def stocked(store: connection.Store, settings: config.Settings) -> Stocked:
    """Fill a service with comments by the caller and by others; one comment is retracted."""
    now = datetime.now(UTC)
    with store.context():
        site_settings.add("demo", ["https://demo.example"], scheme=settings.scheme, now=now)
        site = site_settings.change("demo", options={"inbox": True})
        votes = declared_counters.declare("votes", ["up >= 1"], ["category", "day"], "score")
        declarations.add("demo", votes, now=now)
        grown = sample_threads.grow(site, sample_threads.TREE, thread="t", settings=settings)
        sample_threads.grow(site, {"a": {"b": {}}}, thread="other", settings=settings)
        kept = [row.id for row in grown.values()]
        own = [_post(site, number, kept[number % 3], settings) for number in range(_PLENTY)]
        gone = sample_threads.post(site, "gone", thread="t", settings=settings)
        sample_threads.retract(gone)
        codes = [_code(site, number, settings) for number in range(_CODES)]
        signed = site_tokens.token(site_tokens.share())
        moderator = account_holders.account("ann", account_holders.moderator())
        moderating = moderators.begun(moderator, now=now).token
    app = apps.create_app(settings, store)
    page = "/api/v1/sites/demo/comments?thread=t&limit=2&order="
    asked = [f"{page}{order}" for order in ("thread", "recent", "newest", "best")]
    asked += [f"/api/v1/comments/{kept[0]}/replies?limit=1"]
    cursors = [app.test_client().get(path).json["cursor"] for path in asked]
    half = len(own) // 2
    return Stocked(
        app, own[:half], own[half:], [*kept, gone.id], cursors, codes, signed, moderating
    )


@contextlib.contextmanager
def served(app: flask.Flask) -> Iterator[str]:
    """Serve the application on a loopback port; yield its address."""
    server = serving.make_server("127.0.0.1", 0, app, threaded=True, request_handler=_Quiet)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class _Quiet(serving.WSGIRequestHandler):
    protocol_version = "HTTP/1.1"  # One connection can serve many calls

    def log_request(self, *_: object) -> None:
        pass


def _post(site: records.Site, number: int, parent: str, settings: config.Settings) -> str:
    draft = admission.Submission("t", parent, records.Author("Ann", id=OWN), f"own {number}")
    return new_comment.post(draft, SiteRequest(site, settings, datetime.now(UTC))).comment.id


def _code(site: records.Site, number: int, settings: config.Settings) -> tuple[str, str]:
    now, address = datetime.now(UTC), f"reader{number}@example.org"
    key = email_login.ask(address, site, network=f"net{number}", settings=settings, now=now)
    text = msgspec.json.encode(email_login.Link(key, site.id, address)).decode()
    link = encryption.seal(text, "sign-in link", settings.secret, now=now)
    return key, email_login.code(link, secret=settings.secret, now=now)


def _is_valid(case: Case, where: ParameterLocation) -> bool:
    return case.meta is None or not case.meta.is_negative_at(where)


def chosen(value: object, among: Sequence[Any]) -> Any:
    """Pick an item of `among` by the hash of `value`, so equal values always pick the same item."""
    digest = hashlib.sha256(repr(value).encode()).digest()
    return among[int.from_bytes(digest[:4]) % len(among)]
