"""The clients of the mixed loads: writers that record their changes, readers that check pages.

The module contains the ledger of acknowledged changes. If the service is killed during a request, a
writer repeats the request until an answer arrives, and a reader continues with a new request.
"""

import contextlib
import http.client
import json
import random
import re
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from urllib.parse import urlencode

from benchmarks.mixed_load import page_checks

SITE = "/api/v1/sites/demo/comments"
_PATIENCE = 30.0
_PAUSE = 0.05
_MOST_SHOWN = 5  # Violations of a kind that are kept verbatim.
_VARYING = re.compile(r"[a-z2-7]{26}|\d+")  # Parts that differ between violations of one kind.


@dataclass(slots=True)
class Post:
    """An acknowledged post. `version` is the last acknowledged version."""

    id: str
    parent: str | None
    writer: int
    number: int
    version: int = 0
    is_retracted: bool = False  # The post may have been retracted.
    is_moderated: bool = False  # The post may have been hidden, and perhaps restored since.
    is_hidden: bool = False

    @property
    def must_be_shown(self) -> bool:
        """True if nobody has tried to remove the post."""
        return not (self.is_retracted or self.is_moderated)


@dataclass
class World:
    """State shared by all clients: the service's port, acknowledged changes, counts."""

    threads: int
    port: int = 0
    posts: list[dict[str, Post]] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    violations: list[str] = field(default_factory=list)
    kinds: Counter[str] = field(default_factory=Counter)
    over: threading.Event = field(default_factory=threading.Event)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self.posts = [{} for _ in range(self.threads)]

    def count(self, what: str, number: int = 1) -> None:
        with self.lock:
            self.counts[what] += number

    def blame(self, where: str, wrong: Iterable[str]) -> None:
        """Record violations."""
        for each in wrong:
            with self.lock:
                self.counts["violations"] += 1
                kind = _VARYING.sub("...", each)
                self.kinds[kind] += 1
                if self.kinds[kind] <= _MOST_SHOWN:
                    self.violations.append(f"{time.strftime('%H:%M:%S')} {where}: {each}")

    def report(self) -> str:
        """Return the counts and the violations."""
        counts = (f"{what}: {number:,}" for what, number in self.counts.items())
        kinds = (f"violations: {kind}: {number:,}" for kind, number in self.kinds.most_common())
        return "\n".join([*counts, *kinds, *self.violations])

    def known(self, thread: int) -> dict[str, int]:
        """Return the posts and versions that a reader must see now, without removed posts."""
        with self.lock:
            return {
                each.id: each.version for each in self.posts[thread].values() if each.must_be_shown
            }

    def parents(self, thread: int) -> dict[str, str | None]:
        """Return the parents of a thread's posts."""
        with self.lock:
            return {each.id: each.parent for each in self.posts[thread].values()}

    def still(self, thread: int, known: Mapping[str, int]) -> dict[str, int]:
        """Return the known posts that have not been removed in the meantime."""
        with self.lock:
            here = self.posts[thread]
            return {each: at for each, at in known.items() if here[each].must_be_shown}


def path_of(thread: int, **query: object) -> str:
    """Return the path of a page of a thread."""
    return f"{SITE}?{urlencode({'thread': name_of(thread)} | query)}"


def name_of(thread: int) -> str:
    """Return the id of a thread, in the form in which an import names the thread of a page."""
    return f"blog.example/posts/{thread + 1}"


class Client(threading.Thread):
    """A client that sends requests until the run is over."""

    def __init__(self, world: World, seed: int) -> None:
        super().__init__(daemon=True)
        self.world = world
        self.chance = random.Random(seed)

    def run(self) -> None:
        """Take steps until the run is over."""
        while not self.world.over.is_set():
            try:
                self.step()
            except Exception as error:  # The run must not silently continue without this client.
                self.world.blame(self.name, [f"the client failed: {error!r}"])
                raise

    def step(self) -> None:
        """Do one thing."""
        raise NotImplementedError

    def ask(
        self, method: str, path: str, body: object = None, headers: Mapping[str, str] | None = None
    ) -> tuple[int, bytes] | None:
        """Send a request once on a new connection; return None without a complete answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self.world.port, timeout=_PATIENCE)
        sent = None if body is None else json.dumps(body)
        kind = {} if body is None else {"Content-Type": "application/json"}
        with contextlib.closing(connection):
            try:
                connection.request(method, path, body=sent, headers=kind | dict(headers or {}))
                answer = connection.getresponse()
                status, data = answer.status, answer.read()
            except (OSError, http.client.HTTPException):
                self.world.count("unanswered")
                time.sleep(_PAUSE)  # The service was killed and is restarting.
                return None
        if status >= 500 and status != 503:
            self.world.blame(f"{method} {path}", [f"answered {status}"])
        if status in (429, 503):
            self.world.count("refused")
        return status, data

    def get(self, path: str) -> bytes | None:
        """Return the response for a path, or None if the path is not found."""
        found = self.ask("GET", path)
        if found is None or found[0] != 200:
            return None
        self.world.count("pages")
        return found[1]


class Writer(Client):
    """A client that posts, edits, retracts and votes, and checks each change immediately."""

    def __init__(self, world: World, number: int, seed: int) -> None:
        super().__init__(world, seed)
        self._number = number
        self._written = 0
        self._token = ""
        self._mine: list[tuple[int, Post]] = []

    def step(self) -> None:
        """Change something, then read the result."""
        kind = self.chance.choices(("post", "edit", "vote", "retract"), (40, 44, 10, 6))[0]
        if kind == "post" or not self._mine:
            self._post()
            return
        thread, post = self.chance.choice(self._mine[-200:])
        if kind == "edit":
            self._edit(thread, post)
        elif kind == "retract":
            self._mine.remove((thread, post))
            self._retract(thread, post)
        else:
            self._vote(thread)

    def _insist(
        self, method: str, path: str, body: object = None, headers: Mapping[str, str] | None = None
    ) -> tuple[int, bytes]:
        """Repeat a request until the answer is final."""
        while True:
            found = self.ask(method, path, body, (headers or {}) | self._own())
            if found is not None and found[0] not in (429, 503):
                return found
            time.sleep(_PAUSE)

    def _own(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self._token}"} if self._token else {}

    def _post(self) -> None:
        thread = self.chance.randrange(self.world.threads)
        self._written += 1
        body = {
            "name": f"writer {self._number}",
            "body": page_checks.text(thread, self._number, self._written, 0),
        }
        with self.world.lock:
            there = [each.id for each in self.world.posts[thread].values()]
        if there and self.chance.random() < 0.75:
            # New comments get the most replies.
            body["parent"] = there[-min(len(there), int(self.chance.expovariate(1 / 20)) + 1)]
        key = {"Idempotency-Key": f"mixed-{self._number:04}-{self._written:08}"}
        status, data = self._insist("POST", path_of(thread), body, key)
        if status not in (200, 201):
            if status not in (404, 409):  # Its parent was retracted.
                self.world.blame("post", [f"answered {status}: {data[:200]!r}"])
            return
        made = json.loads(data)
        self._token = self._token or made["token"]
        comment = made["comment"]
        post = Post(comment["id"], comment["parent"], self._number, self._written)
        with self.world.lock:
            self.world.posts[thread][post.id] = post
            self.world.counts["posts"] += 1
        self._mine.append((thread, post))
        self._look(thread, post)

    def _edit(self, thread: int, post: Post) -> None:
        version = post.version + 1
        text = page_checks.text(thread, post.writer, post.number, version)
        status, data = self._insist("PATCH", f"/api/v1/comments/{post.id}", {"body": text})
        if status != 200 and post.is_moderated:
            return
        if status != 200:
            self.world.blame("edit", [f"answered {status}: {data[:200]!r}"])
            return
        with self.world.lock:
            post.version = version
            self.world.counts["edits"] += 1
        self._look(thread, post)

    def _retract(self, thread: int, post: Post) -> None:
        with self.world.lock:
            post.is_retracted = True
        status, data = self._insist("DELETE", f"/api/v1/comments/{post.id}")
        if status not in (200, 204, 404, 409):  # 404, 409: an earlier attempt worked.
            self.world.blame("retract", [f"answered {status}: {data[:200]!r}"])
            return
        self.world.count("retractions")
        page = self.get(path_of(thread, order="newest", limit=200))
        found = () if page is None else page_checks.rows(json.loads(page))
        for each in found:
            if each.id == post.id and each.version is not None:
                self.world.blame("newest", [f"{post.id} is shown after its retraction"])

    def _vote(self, thread: int) -> None:
        chosen = list(self.world.known(thread))
        if chosen:
            one = self.chance.choice(chosen)
            value = {"value": self.chance.choice((1, 1, -1))}
            found = self.ask("PUT", f"/api/v1/comments/{one}/vote", value, self._own())
            if found is not None and found[0] == 200:
                self.world.count("votes")

    def _look(self, thread: int, post: Post) -> None:
        """Read the writer's own change, which no other client changes."""
        path = path_of(thread, around=post.id, limit=self.chance.choice((10, 50)))
        if self.chance.random() < 0.2:
            path = path_of(thread, limit="all")
        page = self.get(path)
        if page is not None:
            shown = page_checks.rows(json.loads(page))
            wrong = [*page_checks.part(shown, thread)]
            wrong += page_checks.missing(shown, self.world.still(thread, {post.id: post.version}))
            self.world.blame(f"own change, {path}", wrong)


class Reader(Client):
    """A client that reads pages of every kind and checks each page.

    `pause` is the mean number of seconds between two pages.
    """

    def __init__(self, world: World, seed: int, pause: float = 0.0) -> None:
        super().__init__(world, seed)
        self._pause = pause

    def step(self) -> None:
        if self._pause:
            self.world.over.wait(self.chance.expovariate(1 / self._pause))
        ways = (self._walk, self._whole, self._replies, self._around, self._level, self._html)
        way = self.chance.choices(ways, (40, 15, 12, 12, 9, 12))[0]
        way(self.chance.randrange(self.world.threads))

    def _walk(self, thread: int) -> None:
        """Follow the cursors from page to page, sometimes to the end."""
        known = self.world.known(thread)
        order = self.chance.choice(page_checks.ORDERS)
        limit = self.chance.choice((10, 50, 200))
        most = 1_000 if limit == 200 and self.chance.random() < 0.3 else self.chance.randint(1, 4)
        walk, cursor = page_checks.Walk(thread, order), ""
        for number in range(most):
            query = {"order": order, "limit": limit} | ({"cursor": cursor} if cursor else {})
            path = path_of(thread, **query)
            data = self.get(path)
            if data is None:
                return
            page = json.loads(data)
            is_whole = not number and page["cursor"] is None
            found = page_checks.rows(page)
            wrong = walk.page(found, is_whole=is_whole, total=page["total"])
            self.world.blame(path, list(wrong))
            cursor = page["cursor"]
            if cursor is None:
                self.world.count("listings read to the end")
                known = self.world.still(thread, known)
                self.world.blame(f"at the end of {path}", walk.end(known))
                return

    def _whole(self, thread: int) -> None:
        known = self.world.known(thread)
        path = path_of(thread, limit="all")
        data = self.get(path)
        if data is not None:
            page = json.loads(data)
            walk = page_checks.Walk(thread, "thread")
            wrong = list(walk.page(page_checks.rows(page), is_whole=True, total=page["total"]))
            wrong += walk.end(self.world.still(thread, known))
            self.world.blame(path, wrong)

    def _one(self, thread: int) -> str | None:
        """Return a post of any writer, preferably a new one."""
        chosen = list(self.world.known(thread))
        if not chosen:
            return None
        return chosen[-min(len(chosen), int(self.chance.expovariate(1 / 100)) + 1)]

    def _replies(self, thread: int) -> None:
        one = self._one(thread)
        path = f"/api/v1/comments/{one}/replies?limit={self.chance.choice((50, 200, 'all'))}"
        data = None if one is None else self.get(path)
        if data is not None:
            shown = page_checks.rows(json.loads(data))
            self.world.blame(path, page_checks.part(shown, thread, above=one))

    def _around(self, thread: int) -> None:
        one = self._one(thread)
        path = path_of(thread, around=one, limit=self.chance.choice((10, 50)))
        data = None if one is None else self.get(path)
        if data is not None:
            self.world.blame(path, page_checks.part(page_checks.rows(json.loads(data)), thread))

    def _level(self, thread: int) -> None:
        """Check one level: the roots, or the replies to one comment."""
        parent = self.chance.choice(("root", self._one(thread) or "root"))
        path = path_of(thread, parent=parent, limit=50)
        data = self.get(path)
        if data is None:
            return
        shown = page_checks.rows(json.loads(data))
        wanted = None if parent == "root" else parent
        wrong = [f"{each.id} is not a child of {parent}" for each in shown if each.parent != wanted]
        wrong += [f"{each.id} is of thread {each.thread}" for each in shown
                  if each.thread not in (None, thread)]  # fmt: skip
        if len({each.id for each in shown}) < len(shown):
            wrong.append("a comment appears twice")
        self.world.blame(path, wrong)

    def _html(self, thread: int) -> None:
        parents = self.world.parents(thread)
        order = self.chance.choice(page_checks.ORDERS)
        query = urlencode({"thread": name_of(thread), "order": order, "limit": 50})
        path = f"/embed/demo/fragment?{query}"
        data = self.get(path)
        if data is not None:
            shown = page_checks.shown_in_html(data.decode(), parents)
            walk = page_checks.Walk(thread, order)
            self.world.blame(path, walk.page(shown, is_whole=False, total=None))


def finished(clients: Iterable[threading.Thread], seconds: float) -> Iterator[threading.Thread]:
    """Wait for clients to end; yield the clients that do not."""
    until = time.monotonic() + seconds
    for client in clients:
        client.join(max(0.0, until - time.monotonic()))
        if client.is_alive():
            yield client
