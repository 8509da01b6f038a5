"""Collect the numbers that pages, calls and commands show of the site "demo", by what they count.

A place that shows a number adds it under the name of what it counts, such as ("comments", "news").
The same name has the same number everywhere.
"""

import csv
import io
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlencode

import flask

from comments.moderation.policy import author_links
from tests.support.histories import mixed_day
from tests.support.html import embedded_threads, html_reader
from tests.support.people import api_requests, console_browser

SITE = "/api/v1/sites/demo"
HELD = ("pending", "spam", "rejected")
COLUMNS = ("comments", "commenters", "pending", "spam", "rejected", "retracted")
VOTES = ("up", "down")  # Only of the site and its days, not of categories
MANY = {"limit": "200"}
_DAYS = 20  # Days, and days in categories, whose audiences are counted
_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_ROW = re.compile(r"<tr><th[^>]*>(.*?)</th>(.*?)</tr>", re.DOTALL)
_CELL = re.compile(r"<td[^>]*>(.*?)</td>", re.DOTALL)
_TAG = re.compile(r"<[^>]*>")


class ShownNumbers:
    """The numbers, each with the places that show it."""

    def __init__(self, app: flask.Flask, threads: list[str]) -> None:
        self._app = app
        self._client = app.test_client()
        self._threads = threads
        self.places: dict[tuple[str, ...], dict[str, int]] = {}
        self._people: dict[str, int] = {}

    def differing(self) -> dict[tuple[str, ...], dict[str, int]]:
        """Return what has different numbers in different places."""
        return {name: places for name, places in self.places.items() if len({*places.values()}) > 1}

    def _add(self, place: str, number: int, *name: str) -> None:
        known = self.places.setdefault(name, {})
        assert known.setdefault(place, number) == number, (name, place)

    def _table(self, *words: str) -> list[dict[str, str]]:
        result = self._app.test_cli_runner().invoke(args=[*words, "--format", "csv"])
        assert result.exit_code == 0, result.output
        return list(csv.DictReader(io.StringIO(result.output)))

    def _answer(self, path: str, **query: str) -> dict[str, Any]:
        response = self._client.get(path, query_string=query)
        assert response.status_code == 200, response.text
        return api_requests.answer(response)

    def _walk(self, path: str, rows: str, **query: str) -> Iterator[tuple[dict[str, Any], int]]:
        """Yield each page of a listing, with the number of its rows."""
        cursor: str | None = ""
        while cursor is not None:
            page = self._answer(path, **query, **({"cursor": cursor} if cursor else {}))
            yield page, len(page[rows])
            cursor = page["cursor"]

    def collect(self, desk: console_browser.Desk, people: Sequence[mixed_day.Person]) -> None:
        """Collect from all places; `desk` belongs to an owner, `people` may follow threads."""
        for thread in self._threads:
            self._of_thread(thread)
        self._of_counts()
        self._of_followers(people)
        self._of_inboxes(people)
        self._of_authors()
        self._of_commands()
        self._of_audiences()
        self._of_counters()
        self._of_desk(desk)

    def _of_thread(self, thread: str) -> None:
        """Collect from a thread's pages in each order, from feeds and from the embedded page."""
        for order in ("thread", "recent", "best", "oldest", "newest"):
            seen = 0
            for page, rows in self._walk(
                f"{SITE}/comments", "comments", thread=thread, order=order, limit="200"
            ):
                self._add(f"total, {order}", page["total"], "visible", thread)
                seen += rows
            self._add(f"rows, {order}", seen, "visible", thread)
        whole = self._answer(f"{SITE}/comments", thread=thread, limit="all")
        self._add("rows, all", len(whole["comments"]), "visible", thread)
        pages = embedded_threads.read(self._client, thread=thread)
        shown = {comment for _, page in pages for comment in page.depths}
        self._add("embedded page", len(shown), "visible", thread)

    def _of_counts(self) -> None:
        for size in (1, 100):
            for start in range(0, len(self._threads), size):
                some = self._threads[start : start + size]
                answer = self._client.post(f"{SITE}/counts", json={"threads": some})
                for thread, number in zip(some, answer.json["counts"], strict=True):
                    self._add(f"counts of {size}", number, "visible", thread)

    def _of_followers(self, people: Sequence[mixed_day.Person]) -> None:
        """Collect the followers of each thread; all of them follow it with a token."""
        answer = self._client.post(
            f"{SITE}/counts", json={"threads": self._threads[:100], "followers": True}
        ).json
        lists = dict.fromkeys(self._threads, 0)
        signed_in = [each for each in people if each.token]
        for person in signed_in:
            for each in person.ask("GET", f"{SITE}/followed").json["threads"]:
                lists[each["thread"]] += 1
        for place, thread in enumerate(self._threads[:100]):
            query = {"thread": thread}
            states = [
                each.ask("GET", f"{SITE}/following", query_string=query).json for each in signed_in
            ]
            for each in states:
                self._add("following", each["followers"], "followers", thread)
            told = sum(each["following"] for each in states)
            self._add("answers to each reader", told, "followers", thread)
            self._add("readers' lists", lists[thread], "followers", thread)
            self._add("counts", answer["followers"][place], "followers", thread)
            self._add("counts with followers", answer["counts"][place], "visible", thread)

    def _of_inboxes(self, people: Sequence[mixed_day.Person]) -> None:
        for person in people:
            rows, cursor = 0, ""
            while person.token and cursor is not None:
                query = {"limit": "5", **({"cursor": cursor} if cursor else {})}
                page = person.ask("GET", f"{SITE}/inbox", query_string=query).json
                self._add("inbox", page["unread"], "unread", person.name)
                rows += len(page["replies"])
                cursor = page["cursor"]
            if person.token:
                self._add("rows of the inbox", rows, "unread", person.name)

    def _of_audiences(self) -> None:
        """Count the commenters of each place as an audience; of days, only the last ones."""
        days = sorted(name for name in self.places if name[0] == "commenters" and _is_day(name[-1]))
        for name in list(self.places):
            if name[0] == "commenters" and name not in days[:-_DAYS]:
                (line,) = self._table("stats", "audience", "demo", "--every", self._source(name))
                self._add("stats audience", int(line["commenters"]), *name)

    def _of_counters(self) -> None:
        """Collect declared counters that count what reports count too."""
        for line in self._table("counter", "show", "demo", "approved-by-category"):
            self._add("declared counter", int(line["number"]), "comments", line["category"])
        for line in self._table("counter", "show", "demo", "pending"):
            self._add("declared counter", int(line["number"]), "pending")

    def _source(self, name: tuple[str, ...]) -> str:
        """Return the source of an audience for a name of commenters."""
        *places, day = name[1:] if _is_day(name[-1]) else (*name[1:], "")
        if not places:
            return f"site@{day}" if day else "site"
        kind = "thread" if places[0] in self._threads else "category"
        return f"{kind}:{places[0]}" + (f"@{day}" if day else "")

    def _of_authors(self) -> None:
        known = [
            author
            for page, _ in self._walk(f"{SITE}/authors", "authors", limit="100")
            for author in page["authors"]
        ]
        self._add("list of authors", len(known), "commenters")

    def _of_commands(self) -> None:
        (whole,) = self._table("stats", "site", "demo")
        self._line("stats site", whole)
        for line in self._table("stats", "categories", "demo"):
            self._line("stats categories", line, line["category"])
            authors = self._table("stats", "commenters", "demo", "--category", line["category"])
            self._add("stats commenters", len(authors), "commenters", line["category"])
        days = self._table("stats", "days", "demo", "--all")
        for line in days:
            names = [name for name in (line["category"], line["day"]) if name]
            self._line("stats days --all", line, *names)
        for name in {line["category"] for line in days}:
            self._sum("sum of days", [line for line in days if line["category"] == name], name)
        for line in self._table("stats", "days", "demo"):
            self._line("stats days", line, line["day"])
        self._of_votes(whole)
        self._of_thread_list()
        people: dict[str, int] = {}
        for thread in self._threads:
            lines = self._table("stats", "commenters", "demo", thread)
            self._add("stats commenters", len(lines), "commenters", thread)
            for line in lines:
                people[line["author"]] = people.get(line["author"], 0) + int(line["comments"])
        self._add("authors of all threads", len(people), "commenters")
        for author, comments in people.items():
            self._add("threads' commenters", comments, "comments", author)
            lines = self._table("stats", "threads", "demo", author)
            told = sum(int(line["comments"]) for line in lines)
            self._add("stats threads", told, "comments", author)
        self._of_exports(people)
        self._people = people

    def _of_votes(self, whole: dict[str, str]) -> None:
        for name in VOTES:
            self._add("stats site", int(whole[name]), name)
            for table in ("days", "months"):
                lines = self._table("stats", table, "demo")
                self._add(f"stats {table}", sum(int(line[name]) for line in lines), name)

    def _of_thread_list(self) -> None:
        result = self._app.test_cli_runner().invoke(args=["thread", "list", "demo", "--json"])
        for line in json.loads(result.stdout):
            self._add("thread list", line["comments"], "visible", line["thread"])

    def _line(self, place: str, line: dict[str, str], *name: str) -> None:
        for column in COLUMNS:
            self._add(place, int(line[column]), column, *name)

    def _sum(self, place: str, lines: list[dict[str, str]], category: str) -> None:
        """Add up lines; commenters are no sum, because people return on other days."""
        for column in COLUMNS:
            if column != "commenters":
                number = sum(int(line[column]) for line in lines)
                self._add(place, number, column, *([category] if category else []))

    def _of_desk(self, desk: console_browser.Desk) -> None:
        today = datetime.now(UTC).date()
        since = today - timedelta(days=364)
        page = desk.page(f"/statistics?since={since}&until={today}")
        by_day, _, by_category = page.partition("<h2>By day")[2].partition("<h2>By category")
        assert by_category
        for name, cells in _rows(by_category.partition("<h2>")[0]):
            self._line("desk", dict(zip(COLUMNS, cells, strict=True)), name)
        recent = self._table("stats", "days", "demo", f"--since={since}", f"--until={today}")
        by_day = by_day.partition("<h2>")[0]
        every = (*COLUMNS, *VOTES)
        shown = [dict(zip(every, cells, strict=True)) for _, cells in _rows(by_day)]
        for report in ("pages", "hours"):
            limit = ["--limit=1000"] if report == "pages" else []
            period = (f"--since={since}", f"--until={today}")
            lines = self._table("stats", report, "demo", *period, *limit)
            total = sum(int(line["comments"]) for line in lines)
            self._add(f"stats {report}", total, "comments", "by day")
        for place, lines in (("desk", shown), ("stats days", recent)):
            for column in every:
                self._add(place, sum(int(line[column]) for line in lines), column, "by day")
        self._of_queues(desk)
        self._of_desk_threads(desk)
        for author in self._people:
            page = desk.page(f"/author?{urlencode({'id': author})}")
            approved = re.search(r"<p>([\d,]+) approved", page)
            told = int(approved[1].replace(",", "")) if approved else 0
            self._add("desk, author", told, "comments of a person", author)

    def _of_desk_threads(self, desk: console_browser.Desk) -> None:
        """Collect the numbers of threads on the page that lists them, and their sums."""
        pending = refused = 0
        for page in _pages(desk, "/threads"):
            for thread, cells in _rows(page):
                self._add("desk, threads", int(cells[0]), "visible", thread)
                pending += int(cells[1])
                refused += int(cells[2])
        self._add("desk, threads", pending, "pending")
        self._add("desk, threads", refused, "refused")
        self._add("stats site", self._sum_of("spam") + self._sum_of("rejected"), "refused")

    def _sum_of(self, status: str) -> int:
        return self.places[status,]["stats site"]

    def _of_queues(self, desk: console_browser.Desk) -> None:
        """Collect the numbers on the tabs of the lists of comments, and count their comments."""
        tabs = desk.page("/queue?status=any")
        for status in HELD:
            where = "/queue" if status == "pending" else rf"\?status={status}"
            tab = re.search(rf'href="[^"]*{where}"[^>]*>(.*?)</a>', tabs, re.DOTALL)
            assert tab
            shown = re.search(r"[\d,]+", _plain(tab[1]))
            self._add("desk, tab", int(shown[0].replace(",", "")) if shown else 0, status)
            pages = _pages(desk, "/queue", f"?status={status}")
            listed = [each for page in pages for each in re.findall(r'name="c\.([^"]+)"', page)]
            self._add("desk, queue", len(listed), status)

    def _of_exports(self, people: Mapping[str, int]) -> None:
        """Count the approved comments in the exports of authors' data, with all linked ids."""
        for author in people:
            ids = author_links.person("demo", author)
            told = sum(people.get(one, 0) for one in ids)
            self._add("sum of linked ids", told, "comments of a person", author)
            result = self._app.test_cli_runner().invoke(args=["author", "export", author])
            assert result.exit_code == 0, result.output
            said = [each["status"] for each in json.loads(result.stdout)["comments"]]
            told = said.count("approved")
            self._add("author export", told, "comments of a person", author)


def _is_day(text: str) -> bool:
    return _DAY.fullmatch(text) is not None


def _pages(desk: console_browser.Desk, path: str, first: str = "") -> Iterator[str]:
    """Yield all pages of a list in the admin console. `first` is the query of the first page."""
    query: str | None = first
    while query is not None:
        page = desk.page(path + query)
        yield page
        links = (found for tag, found in html_reader.Elements(page).elements if tag == "a")
        query = next((found["href"] for found in links if found.get("rel") == "next"), None)


def _rows(page: str) -> Iterator[tuple[str, list[str]]]:
    """Yield the rows of the tables on a page: the label and the numbers."""
    for label, columns in _ROW.findall(page):
        cells = _CELL.findall(columns)
        if cells:
            yield _plain(label), [_plain(cell).replace(",", "") for cell in cells]


def _plain(html: str) -> str:
    return _TAG.sub("", html).strip()
