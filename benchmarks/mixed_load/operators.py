"""The operators of `endurance`: an owner who imports exports, and a moderator who hides comments.

An import is a process of its own, beside the running service, and adds comments to the threads that
writers write to. The texts of imported comments name no post, so `page_checks` checks only their
places.
"""

import base64
import hashlib
import re
import secrets
from datetime import UTC, datetime
from pathlib import Path

from benchmarks import exports, measuring, servers
from benchmarks.mixed_load import load_clients
from benchmarks.mixed_load.load_clients import Client, World
from benchmarks.threads import loading
from comments.accounts import accounts, identities, moderation_sessions
from comments.accounts.links import window_codes
from comments.domain.moderation import roles
from comments.sites import site_settings

SITE = "demo"
_ADDED = re.compile(r"Added (\d+) comments? ")


def prepare(data: Path) -> str:
    """Store the site and a moderator's account; return the token of the moderator's session."""
    data.mkdir()
    now = datetime.now(UTC)
    with measuring.stored(data / "flatthread.db"):
        site_settings.add(SITE, [exports.ORIGIN], scheme=loading.SCHEME, now=now)
        return _session(now)


def _session(now: datetime) -> str:
    secret, login = servers.SECRET, identities.of_login("moderator")
    grants = (roles.Grant(roles.Role.MODERATOR, SITE),)
    newcomer = accounts.NewAccount(accounts.new_id(), "Moderator", (login,), grants=grants)
    account = accounts.add(newcomer, secret=secret, now=now)
    verifier = secrets.token_urlsafe(32)
    digest = hashlib.sha256(verifier.encode()).digest()
    challenge = base64.urlsafe_b64encode(digest).decode().rstrip("=")
    code = moderation_sessions.grant(
        account, SITE, exports.ORIGIN, challenge, secret=secret, now=now
    )
    shown = window_codes.PresentedCode(verifier, code)
    return moderation_sessions.begin(shown, SITE, exports.ORIGIN, secret=secret, now=now).token


class Moderator(Client):
    """A client that hides posts of all writers, and restores some of them."""

    def __init__(self, world: World, seed: int, token: str, pause: float) -> None:
        super().__init__(world, seed)
        self._headers = {"Authorization": f"Bearer {token}", "Origin": exports.ORIGIN}
        self._pause = pause
        self._hidden: list[load_clients.Post] = []

    def step(self) -> None:
        """Hide one post, or restore one."""
        self.world.over.wait(self.chance.expovariate(1 / self._pause))
        if self._hidden and self.chance.random() < 0.5:
            self._decide("restore", self._hidden.pop(self.chance.randrange(len(self._hidden))))
            return
        with self.world.lock:
            thread = self.chance.choice(self.world.posts)
            posts = [each for each in thread.values() if each.must_be_shown]
            post = self.chance.choice(posts) if posts else None
            if post is not None:
                post.is_moderated = True
        if post is not None and self._decide("hide", post):
            self._hidden.append(post)

    def _decide(self, verb: str, post: load_clients.Post) -> bool:
        path = f"/api/v1/comments/{post.id}/decision"
        found = self.ask("POST", path, {"verb": verb}, self._headers)
        if found is None or found[0] != 200:
            # The author may have retracted the post in the meantime.
            if not (found and post.is_retracted):
                self.world.blame(verb, [f"answered {found}"])
            return False
        post.is_hidden = verb == "hide"
        self.world.count("decisions")
        return True


class Importer(Client):
    """A client that imports one export after the other into the threads, and each of them twice."""

    def __init__(self, world: World, seed: int, folder: Path, size: int, pause: float) -> None:
        super().__init__(world, seed)
        self._data, self._file = folder / "data", folder / "export.xml"
        self._size, self._pause = size, pause
        self._number = 0

    def step(self) -> None:
        """Import an export."""
        self._number += 1
        sizes, count = [self._size] * self.world.threads, self._size * self.world.threads
        exports.write(self._file, "disqus", sizes, first=self._number * count)
        for expected in (count, 0):
            done = servers.command(self._data, "import", "disqus", str(self._file), "--site", SITE)
            added = _ADDED.search(done.stdout)
            # The command verifies the import, and fails if something differs for no known reason.
            if done.returncode or added is None or int(added[1]) != expected:
                wrong = f"{done.stdout[-500:]}{done.stderr[-2_000:]}"
                self.world.blame("import", [f"expected {expected} comments: {wrong}"])
            self.world.count("imported comments", int(added[1]) if added else 0)
        self.world.over.wait(self._pause)
