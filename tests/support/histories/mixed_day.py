"""A day of mixed work on one site, through the API, the admin console's rights and the commands.

People post, reply, edit, delete, vote, follow threads and erase their data. They claim comments
that were imported under their addresses (`Person.address`). Moderators decide about comments, move
threads to other categories, and link authors. All choices come from one seed.
"""

import random
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime

import flask
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from comments.accounts import identities, reader_accounts
from comments.moderation.policy import author_links
from comments.sites import site_settings
from comments.upkeep import scheduler
from comments.web.api.callers import api_callers
from tests.support.threads import sample_threads

SITE = "/api/v1/sites/demo"
ONE = "/api/v1/comments/"
STEPS = {
    "post": 10, "reply": 10, "edit": 3, "delete": 2, "vote": 10, "decide": 8, "categorize": 2,
    "erase": 1, "follow": 8, "unfollow": 2,
}  # fmt: skip
STEPS_WITH_CLAIMS = STEPS | {"claim": 3, "link": 3, "unlink": 2}


class Person:
    """A reader with a network, a token and comments of their own."""

    def __init__(self, client: FlaskClient, number: int) -> None:
        self._client = client
        self._network = f"198.51.100.{number}"
        self.name = f"Reader {number}"
        self.address = f"reader{number}@example.org"
        self.token = ""
        self.own: list[str] = []

    def ask(self, method: str, path: str, **more: object) -> TestResponse:
        headers = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        response = self._client.open(
            path,
            method=method,
            headers=headers,
            environ_base={"REMOTE_ADDR": self._network},
            **more,  # type: ignore[arg-type]
        )
        assert response.status_code < 500, response.text
        return response


class MixedDay:
    """The people of a site and the steps that they take.

    Args:
        threads: the ids of the threads in which people write.
        steps: the names of the possible steps, each with its weight.
    """

    def __init__(
        self,
        app: flask.Flask,
        threads: Sequence[str],
        seed: int,
        people: int,
        steps: Mapping[str, int] = STEPS,
    ) -> None:
        self._app = app
        self._steps = steps
        self._threads = threads
        self._rng = random.Random(seed)
        self.people = [Person(app.test_client(), number) for number in range(people)]
        self._known: list[tuple[str, str]] = []  # Threads and ids of comments
        self._linked: list[tuple[str, str]] = []
        self.done: dict[str, int] = {}

    def pass_by(self, steps: int) -> None:
        """Take a number of steps; `done` counts those that had an effect, by name."""
        for _ in range(steps):
            (name,) = self._rng.choices(list(self._steps), list(self._steps.values()))
            take: Callable[[Person], bool] = getattr(self, f"_{name}")
            if take(self._rng.choice(self.people)):
                self.done[name] = self.done.get(name, 0) + 1

    def _post(self, person: Person, thread: str = "", **more: object) -> bool:
        thread = thread or self._rng.choice(self._threads)
        said = person.ask(
            "POST",
            f"{SITE}/comments",
            query_string={"thread": thread},
            json={"name": person.name, "body": f"Text {self._rng.random()}", **more},
        )
        if said.status_code not in (201, 202):
            return False
        person.token = said.json["token"]
        person.own.append(said.json["comment"]["id"])
        self._known.append((thread, said.json["comment"]["id"]))
        return True

    def _reply(self, person: Person) -> bool:
        if not self._known:
            return False
        thread, parent = self._rng.choice(self._known)
        return self._post(person, thread, parent=parent)

    def _edit(self, person: Person) -> bool:
        return self._of_own(person, "PATCH", json={"body": f"Edited {self._rng.random()}"})

    def _delete(self, person: Person) -> bool:
        return self._of_own(person, "DELETE")

    def _of_own(self, person: Person, method: str, **more: object) -> bool:
        if not person.own:
            return False
        return person.ask(method, ONE + self._rng.choice(person.own), **more).status_code == 200

    def _vote(self, person: Person) -> bool:
        if not (self._known and person.token):
            return False
        path = f"{ONE}{self._rng.choice(self._known)[1]}/vote"
        value = self._rng.choice([1, 1, -1])
        return person.ask("PUT", path, json={"value": value}).status_code == 200

    def _decide(self, _: Person) -> bool:
        if not self._known:
            return False
        verb = self._rng.choice(["approve", "approve", "reject", "spam"])
        return self.command("moderate", verb, "demo", self._rng.choice(self._known)[1])

    def _categorize(self, _: Person) -> bool:
        names = self._rng.sample(["sport", "sport/football", "sport/tennis", "news"], 2)
        chosen = [f"--category={name}" for name in names]
        return self.command("thread", "set", "demo", self._rng.choice(self._threads), *chosen)

    def _follow(self, person: Person) -> bool:
        return self._of_thread(person, "PUT")

    def _unfollow(self, person: Person) -> bool:
        return self._of_thread(person, "DELETE")

    def _of_thread(self, person: Person, method: str) -> bool:
        path, query = f"{SITE}/following", {"thread": self._rng.choice(self._threads)}
        return (
            bool(person.token) and person.ask(method, path, query_string=query).status_code == 200
        )

    def _claim(self, person: Person) -> bool:
        self._erase(person)  # Nobody would have the guest's token any more
        settings, now = sample_threads.SETTINGS, datetime.now(UTC)
        reader = reader_accounts.Reader(identities.of_address(person.address), person.name)
        account = reader_accounts.sign_in(reader, secret=settings.secret, now=now)
        caller = api_callers.caller_of_account(account, "demo")
        person.token, person.own = caller.token(settings, now).token, []
        site, secret = site_settings.get("demo"), settings.secret
        claimed = author_links.claim(site, person.address, account, secret=secret, now=now)
        listed = person.ask("GET", f"{SITE}/author").json["comments"]
        person.own = [each["id"] for each in listed if each["status"] == "approved"]
        return claimed > 0

    def _link(self, _: Person) -> bool:
        if len(self._known) < 2:
            return False
        scheduler.Scheduler().sweep_fresh()  # Authors are known once their comments are counted
        pair = [comment for _, comment in self._rng.sample(self._known, 2)]
        if is_done := self.command("moderate", "link", "demo", *pair):
            self._linked.append((pair[0], pair[1]))
        return is_done

    def _unlink(self, _: Person) -> bool:
        if not self._linked:
            return False
        return self.command("moderate", "unlink", "demo", *self._rng.choice(self._linked))

    def _erase(self, person: Person) -> bool:
        if not person.token:
            return False
        while not person.ask("DELETE", f"{SITE}/author").json.get("done"):
            pass
        person.token, person.own = "", []
        return True

    def command(self, *words: str) -> bool:
        return self._app.test_cli_runner().invoke(args=words).exit_code == 0
