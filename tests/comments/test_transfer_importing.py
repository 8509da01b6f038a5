"""Claims about imports: whole, in order, once, resumable; on our fixtures and on real exports."""

import hashlib
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest

from comments import datastore, errors, floor, models, records, rendering, repair, sites, sorthash
from comments.records import Status, ThreadState
from comments.transfer import disqus, importing, planning, report, source, wordpress
from emulator import inprocess

ROOT = Path(__file__).parents[2]
INDEXES = ROOT / "index.yaml"
IMPORTS = ROOT / "tests" / "fixtures" / "imports"
NOW = datetime(2026, 1, 2, tzinfo=UTC)
SCHEME = sorthash.Scheme()
SITE = records.Site(
    id="garden", origins=("https://garden.example",), digits=SCHEME.digits, width=SCHEME.width
)
ROSES = records.ThreadName("garden", "garden.example/roses")


def planned(
    name: str, reader: source.Reader = disqus.read, levels: int = 8, site: records.Site = SITE
) -> importing.Plan:
    scheme = sorthash.Scheme(levels=levels)
    return importing.plan(reader, IMPORTS / name, site=site, scheme=scheme)


def post(post_id: str, parent: str | None = None, minute: int = 0, **more: str) -> str:
    """A post of a Disqus export on one line, in thread 1."""
    values = {"message": f"text {post_id}", "name": "Ada", "thread": "1"} | more
    created = values.get("created", f"2015-01-01T{minute // 60:02}:{minute % 60:02}:00Z")
    answers = f'<parent dsq:id="{parent}"/>' if parent else ""
    return (
        f'<post dsq:id="{post_id}"><message><![CDATA[{values["message"]}]]></message>'
        f"<createdAt>{created}</createdAt><isDeleted>false</isDeleted><isSpam>false</isSpam>"
        f"<author><name>{values['name']}</name></author>"
        f'<thread dsq:id="{values["thread"]}"/>{answers}</post>\n'
    )


THREAD = '<thread dsq:id="1"><link>https://garden.example/roses</link></thread>\n'


@pytest.fixture
def export(tmp_path: Path) -> Callable[..., Path]:
    """Writes a Disqus export of its arguments, one a line from line 2 on."""

    def write(*lines: str, name: str = "export.xml") -> Path:
        path = tmp_path / name
        opening = (
            '<disqus xmlns="http://disqus.com" xmlns:dsq="http://disqus.com/disqus-internals">'
        )
        path.write_text(f"{opening}\n{''.join(lines)}</disqus>")
        return path

    return write


def plan_of(path: Path, levels: int = 8, site: records.Site = SITE) -> importing.Plan:
    return importing.plan(disqus.read, path, site=site, scheme=sorthash.Scheme(levels=levels))


def written(plan: importing.Plan) -> dict[str, records.ImportedComment]:
    """What a plan would write, by the id in the source."""
    return {
        comment.source.partition(":")[2]: comment
        for thread in plan.threads
        for batch in plan.batches(thread)
        for comment in batch
    }


def notes(plan: importing.Plan, kind: str) -> list[tuple[int, str]]:
    return [(note.line, note.text) for note in plan.report.notes if note.kind == kind]


# --- The first pass: needs no store ---------------------------------------------------------


def test_the_report_counts_what_will_be_stored():
    with planned("disqus.xml") as plan:
        assert (plan.report.comments, plan.report.threads) == (12, 2)
        assert plan.report.statuses == {"approved": 10, "retracted": 1, "spam": 1}
        assert sum(1 for _ in plan.report.lines()) > 10


def test_two_pages_of_one_path_become_one_thread_that_is_open_while_one_is():
    with planned("disqus.xml") as plan:
        roses, tulips = plan.threads
        assert roses.name == ROSES
        assert (roses.state, roses.url) == (ThreadState.OPEN, "http://garden.example/roses/")
        assert {node.id for node in roses.nodes} >= {"101", "102"}
        ((line, text),) = notes(plan, report.MERGED)
        assert line == 14
        assert "http://garden.example/roses/ (line 14), https://garden.example/roses" in text
        assert tulips.state is ThreadState.CLOSED


def test_a_title_is_plain_text():
    with planned("disqus.xml") as plan:
        assert plan.threads[0].title == "Roses & thorns"


def test_a_thread_without_a_usable_link_is_named_by_its_id_or_left_out():
    with planned("disqus.xml") as plan:
        assert plan.threads[1].name.id == "tulips"
        assert [line for line, _ in notes(plan, report.NO_LINK)] == [24]
        assert [line for line, _ in notes(plan, report.NO_NAME)] == [25]
        assert "301" not in written(plan)


def test_comments_of_deleted_and_missing_threads_are_left_out_and_noted():
    with planned("disqus.xml") as plan:
        assert not written(plan).keys() & {"302", "303"}
        assert notes(plan, report.DELETED) == [(26, "http://garden.example/old")]
        assert notes(plan, report.NO_THREAD) == [(41, "303 in thread 77")]


def test_threads_without_comments_are_not_made():
    with planned("disqus.xml") as plan:
        assert all("localhost" not in thread.name.id for thread in plan.threads)


def test_a_retracted_comment_comes_without_content_and_personal_data():
    with planned("disqus.xml") as plan:
        gone = written(plan)["104"]
    assert (gone.status, gone.body, gone.html, gone.renderer) == (Status.RETRACTED, "", "", "")
    assert gone.author == records.Author("")


def test_bodies_pass_the_sanitiser_and_keep_their_source():
    with planned("disqus.xml") as plan:
        first = written(plan)["101"]
    assert first.html == f'<p>First. <a rel="{rendering.LINK_REL}">z</a></p>'
    assert first.body.startswith("<p>First.<script>")
    assert first.renderer == rendering.SANITISER


def test_a_comment_without_name_is_a_guests_and_one_without_text_is_kept():
    with planned("disqus.xml") as plan:
        found = written(plan)
        assert (found["102"].author.name, found["107"].body) == (planning.GUEST, "")
        assert len(notes(plan, report.NAMELESS)) == 1
        assert [text for _, text in notes(plan, report.EMPTY)] == ["107"]


def test_replies_that_cannot_be_placed_become_roots_and_are_noted():
    with planned("disqus.xml") as plan:
        found = written(plan)
        assert all(found[each].reply_to is None for each in ("108", "109", "201"))
        assert [text for _, text in notes(plan, report.ORPHANS)] == ["108 answers 999"]
        assert [text for _, text in notes(plan, report.UNROOTED)] == ["109 answers 301"]
        assert [text for _, text in notes(plan, report.CROSSING)] == ["201 answers 101"]


def test_a_circle_is_cut_at_its_earliest_comment():
    with planned("disqus.xml") as plan:
        found = written(plan)
        assert found["203"].reply_to is None
        assert found["202"].reply_to == found["203"].id
        assert len(notes(plan, report.CYCLES)) == 1


def test_an_id_that_comes_twice_is_taken_once():
    with planned("disqus.xml") as plan:
        assert written(plan)["203"].body == "And round."
        assert notes(plan, report.REPEATED) == [(38, "203 came in line 37")]


def test_a_reply_may_come_before_its_parent_and_its_thread():
    with planned("disqus.xml") as plan:
        order = [node.id for node in plan.threads[0].nodes]
        assert order == ["108", "101", "103", "104", "105", "102", "106", "107", "109"]


def test_hosts_that_are_not_the_sites_are_noted():
    with planned(
        "disqus.xml", site=msgspec.structs.replace(SITE, origins=("https://x.example",))
    ) as plan:
        hosts = [text for _, text in notes(plan, report.ELSEWHERE)]
    assert any(text.startswith("garden.example ") for text in hosts)


def test_a_report_shows_the_first_notes_of_a_kind_and_counts_the_rest(
    export: Callable[..., Path],
):
    with plan_of(export(THREAD, *(post(str(n), "none") for n in range(25)))) as plan:
        lines = list(plan.report.lines())
    start = lines.index(f"{report.ORPHANS}: 25")
    assert lines[start + 1] == "  line 3: 0 answers none"
    assert lines[start + 21] == "  and 5 more"


def test_a_thread_that_comes_twice_is_taken_once(export: Callable[..., Path]):
    with plan_of(export(THREAD, THREAD.replace("roses", "tulips"), post("1"))) as plan:
        assert [thread.name for thread in plan.threads] == [ROSES]
        assert notes(plan, report.REPEATED) == [(3, "thread 1 came in line 2")]


def test_a_title_or_link_that_cannot_be_shown_is_left_empty(export: Callable[..., Path]):
    title = "x" * (rendering.MAX_HTML + 1)
    thread = THREAD.replace("</link>", f"?it's</link><title>{title}</title>")
    with plan_of(export(thread, post("1"))) as plan:
        assert (plan.threads[0].title, plan.threads[0].url) == ("", "")
        assert plan.threads[0].name == ROSES


def test_the_sites_rules_tell_pages_apart(export: Callable[..., Path]):
    lines = [
        f'<thread dsq:id="{n}"><link>https://garden.example/?p={n}</link></thread>\n' for n in "12"
    ]
    path = export(*lines, post("1"), post("2", thread="2"))
    with plan_of(path) as plan:
        assert [thread.name.id for thread in plan.threads] == ["garden.example/"]
    with plan_of(path, site=msgspec.structs.replace(SITE, query_keys=("p",))) as plan:
        names = [thread.name.id for thread in plan.threads]
        assert names == ["garden.example/?p=1", "garden.example/?p=2"]


def test_wordpress_replies_to_pingbacks_become_roots():
    with planned("wordpress.xml", wordpress.read) as plan:
        assert written(plan)["12"].reply_to is None
        assert [text for _, text in notes(plan, report.SKIPPED)] == ["pingback", "order_note"]
        assert [text for _, text in notes(plan, report.UNROOTED)] == ["12 answers 11"]


def test_comments_of_pages_that_not_everybody_may_read_are_held():
    with planned("wordpress.xml", wordpress.read) as plan:
        found = written(plan)
        assert (found["20"].status, found["21"].status) == (Status.PENDING, Status.SPAM)
        assert len(notes(plan, report.HIDDEN)) == 1


def test_a_website_that_is_not_one_is_dropped_and_names_of_owners_are_kept():
    with planned("wordpress.xml", wordpress.read) as plan:
        found = written(plan)
        assert (found["9"].author.website, found["10"].author.name) == ("", "admin")
        assert found["10"].author.website == "https://garden.example/"
        assert [text.partition(":")[0] for _, text in notes(plan, report.WEBSITES)] == ["9"]


@pytest.mark.parametrize(
    "bad",
    [
        post("2", created="soon"),
        post(" "),
        post("2", message="<b>" * (rendering.MAX_TAGS + 1)),
        post("2", message="x" * (rendering.MAX_HTML + 1)),
        "<post>\n",
        "<!DOCTYPE x>\n",
    ],
)
def test_one_bad_comment_refuses_the_file_with_its_line(export: Callable[..., Path], bad: str):
    path = export(THREAD, post("1"), bad)
    with pytest.raises(errors.BadImport) as caught:
        plan_of(path)
    assert caught.value.line in {4, 5}
    assert str(path) in caught.value.message


def test_a_file_with_too_many_comments_is_refused(
    export: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(planning, "MAX_COMMENTS", 2)
    with pytest.raises(errors.BadImport) as caught:
        plan_of(export(THREAD, post("1"), post("2"), post("3")))
    assert caught.value.line == 5


def test_ids_are_the_same_for_ever():
    # A change would import every comment of every site a second time.
    assert planning.comment_id("garden", "disqus", "101") == "2ulufdhehb6oevol6lpj6wfqky"
    digest = hashlib.sha256(b"\0\0\0\x06garden\0\0\0\x06disqus\0\0\0\x03101").digest()
    assert planning.comment_id("garden", "disqus", "101") == models.comment_id(digest)
    assert planning.comment_id("a", "bc", "d") != planning.comment_id("ab", "c", "d")


def test_a_batch_is_bounded_in_comments_and_in_bytes(export: Callable[..., Path]):
    many = [post(str(n)) for n in range(importing.BATCH + 1)]
    long = [post(f"1{n:04}", message="x" * rendering.MAX_HTML) for n in range(20)]
    with plan_of(export(THREAD, *many, *long)) as plan:
        batches = list(plan.batches(plan.threads[0]))
    assert max(map(len, batches)) == importing.BATCH
    sizes = [sum(len(each.body) + len(each.html) for each in batch) for batch in batches]
    assert max(sizes) <= importing.BATCH_BYTES


# --- The second pass ------------------------------------------------------------------------


@pytest.fixture
def garden(store: datastore.Store) -> records.Site:
    return sites.add("garden", SITE.origins, scheme=SCHEME, now=NOW)


def write(plan: importing.Plan, levels: int = 8) -> importing.Summary:
    return importing.write(plan, scheme=sorthash.Scheme(levels=levels), now=NOW)


def rows() -> list[records.Comment]:
    """Every stored comment, by thread in the order of its hashes."""
    found = map(models.comment_from_message, datastore.fetch(datastore.Query("Comment")))
    return sorted(found, key=lambda row: (row.thread, row.sort_hash))


def entities() -> int:
    return sum(datastore.count(datastore.Query(kind)) for kind in ("Comment", "Thread"))


def source_ids(found: list[records.Comment], plan: importing.Plan) -> list[str]:
    names = {plan.id_of(node.id): node.id for thread in plan.threads for node in thread.nodes}
    return [names[row.id] for row in found]


def test_an_import_stores_everything_in_order(garden: records.Site):
    with planned("disqus.xml") as plan:
        steps: list[int] = []
        summary = importing.write(plan, scheme=SCHEME, now=NOW, progress=steps.append)
        assert summary == importing.Summary(added=12, present=0, threads=2)
        assert sum(steps) == 12
        assert source_ids([row for row in rows() if row.thread == ROSES.id], plan) == (
            ["108", "101", "103", "104", "105", "102", "106", "107", "109"]
        )
        listed = source_ids(list(floor.thread(ROSES)), plan)
    # 104 was retracted and stays for its reply; 106 is spam.
    assert listed == ["108", "101", "103", "104", "105", "102", "107", "109"]
    assert repair.find_problems(SCHEME, ROSES) == []


def test_dates_far_away_are_kept(garden: records.Site):
    with planned("disqus.xml") as plan:
        write(plan)
    years = {row.created.year for row in rows()}
    assert {1900, 9999} <= years


def test_importing_again_adds_nothing_and_changes_nothing(garden: records.Site):
    with planned("disqus.xml") as plan:
        write(plan)
        before = rows()
        assert write(plan) == importing.Summary(added=0, present=12, threads=2)
    assert rows() == before


def test_a_later_export_is_appended(garden: records.Site, export: Callable[..., Path]):
    first = [post("1", minute=5), post("2", "1", minute=9)]
    with plan_of(export(THREAD, *first)) as plan:
        write(plan)
    more = [post("3", "1", minute=7), post("4", minute=1)]
    with plan_of(export(THREAD, *first, *more)) as plan:
        assert write(plan).added == 2
        # Numbers are never given again, so what comes later stands behind, whatever its date.
        assert source_ids(rows(), plan) == ["1", "2", "3", "4"]


def test_more_siblings_than_two_digits_hold_keep_their_order(
    garden: records.Site, export: Callable[..., Path]
):
    replies = [post(str(n), "1", minute=n % 1440) for n in range(2, 2_600)]
    with plan_of(export(THREAD, post("1"), *replies)) as plan:
        write(plan)
        expected = sorted(range(2, 2_600), key=lambda n: (n % 1440, n))
        assert source_ids(rows(), plan) == ["1", *map(str, expected)]


def test_a_refused_file_leaves_nothing_behind(garden: records.Site, export: Callable[..., Path]):
    with pytest.raises(errors.BadImport):
        plan_of(export(THREAD, post("1"), post("2", created="soon")))
    with planned("disqus.xml") as plan:
        assert plan.report.comments == 12
    assert entities() == 0


class Killed(BaseException):
    """The process ends here."""


@pytest.mark.parametrize("after", [1, 2, 3])
def test_an_interrupted_import_is_finished_by_running_again(
    garden: records.Site, monkeypatch: pytest.MonkeyPatch, after: int
):
    monkeypatch.setattr(importing, "BATCH", 3)
    done: list[int] = []

    def kill(count: int) -> None:
        done.append(count)
        if len(done) == after:
            raise Killed

    with planned("disqus.xml") as plan, pytest.raises(Killed):
        importing.write(plan, scheme=SCHEME, now=NOW, progress=kill)
    assert len(rows()) == sum(done)
    with planned("disqus.xml") as plan:
        assert write(plan) == importing.Summary(added=12 - sum(done), present=sum(done), threads=2)
        order = source_ids([row for row in rows() if row.thread == ROSES.id], plan)
    assert order == ["108", "101", "103", "104", "105", "102", "106", "107", "109"]
    assert all(repair.find_problems(SCHEME, name) == [] for name in repair.threads("garden"))


def imported_in_pieces(path: Path, pieces: int) -> list[records.Comment]:
    """What a fresh store holds after `pieces` runs that were killed and one that was not."""
    scheme = sorthash.Scheme(levels=3)
    with inprocess.open_engine(None, indexes=INDEXES) as engine:
        store = datastore.Store(inprocess.Channel(engine), project="test")
        with store.context(), plan_of(path, levels=3) as plan:
            for piece in range(pieces):
                # Each run gets one batch further than the one before it.
                left = iter(range(piece))
                with pytest.raises(StopIteration):
                    importing.write(
                        plan, scheme=scheme, now=NOW, progress=lambda _, left=left: next(left)
                    )
            write(plan, levels=3)
            return rows()


def test_an_interrupted_import_ends_as_an_uninterrupted_one(
    monkeypatch: pytest.MonkeyPatch, export: Callable[..., Path]
):
    links = {n: None if n % 7 == 0 else str(n // 3) for n in range(40)}
    path = export(THREAD, *(post(str(n), links[n], minute=n) for n in links))
    monkeypatch.setattr(importing, "BATCH", 4)
    assert imported_in_pieces(path, pieces=10) == imported_in_pieces(path, pieces=0)


def test_a_report_shows_no_escape_sequences_of_strangers(export: Callable[..., Path]):
    link = "https://garden.example/\x9b2Jx\ny" + "z" * 500
    thread = f'<thread dsq:id="1"><link>{link}</link><isDeleted>true</isDeleted></thread>\n'
    with plan_of(export(thread, post("1"))) as plan:
        lines = list(plan.report.lines())
    assert "\ufffd2Jx" in "".join(lines)
    assert all(line.isprintable() and len(line) < 400 for line in lines)


def test_comments_that_stand_elsewhere_already_refuse_the_import_before_it_starts(
    garden: records.Site, export: Callable[..., Path]
):
    with plan_of(export(THREAD, post("1"))) as plan:
        write(plan)
    other = THREAD.replace("roses", "tulips")
    before = entities()
    path = export(other, post("0"), post("1"), post("2", "1"))
    with plan_of(path) as plan, pytest.raises(errors.Conflict) as caught:
        write(plan)
    assert caught.value.code == "imported-elsewhere"
    assert f"{path}:4" in caught.value.message
    assert entities() == before


def test_a_commit_whose_answer_was_lost_is_counted_once(
    garden: records.Site, export: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
):
    # The store runs a body again when it cannot know whether the commit was applied.
    transaction = datastore.transaction

    def twice(body: Callable[[], None], *, line: str = "") -> None:
        transaction(body, line=line)
        transaction(body, line=line)

    monkeypatch.setattr(datastore, "transaction", twice)
    with plan_of(export(THREAD, post("1"), post("2", "1"))) as plan:
        assert write(plan).added == 2
    assert len(rows()) == 2


# --- Real exports, where they are at hand ---------------------------------------------------

DATA = ROOT.parent / "shared" / "data"


def real(name: str) -> Path:
    path = DATA / name
    if not path.exists():
        pytest.skip(f"needs {name} of the shared data beside the repository")
    return path


READERS = {
    "disqus/benbalter-1145.xml": disqus.read,
    "disqus/laisky-209.xml": disqus.read,
    "disqus/evanlin-189.xml": disqus.read,
    "wxr/themeunittestdata-33.xml": wordpress.read,
    "wxr/timothyfitz-381.xml": wordpress.read,
    "fixtures/wordpress/malformed-simple.xml": wordpress.read,
    "fixtures/remark42/disqus.xml": disqus.read,
    "fixtures/remark42/disqus-deleted-post.xml": disqus.read,
    "fixtures/remark42/disqus-deleted-thread.xml": disqus.read,
}


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("wxr/timothyfitz-381.xml", 49),
        ("fixtures/wordpress/malformed-simple.xml", 14),
        ("fixtures/remark42/disqus.xml", 1),
        ("fixtures/remark42/disqus-deleted-post.xml", 1),
        ("fixtures/remark42/disqus-deleted-thread.xml", 1),
    ],
)
def test_a_real_file_that_is_not_xml_is_refused_and_leaves_nothing(
    garden: records.Site, name: str, line: int
):
    with pytest.raises(errors.BadImport) as caught:
        importing.plan(READERS[name], real(name), site=garden, scheme=SCHEME)
    assert caught.value.line == line
    assert entities() == 0


def by_definition(items: list[source.Comment], levels: int) -> Iterator[str]:
    """The order of one thread as the rules say it: places one by one, then a recursive walk."""
    by_id = {item.id: item for item in items}

    def place(item: source.Comment) -> tuple[str | None, int]:
        if item.parent not in by_id:
            return None, 0
        above, level = place(by_id[item.parent])
        return (above, level) if level == levels - 1 else (item.parent, level + 1)

    def walk(parent: str | None) -> Iterator[str]:
        below = [item for item in items if place(item)[0] == parent]
        for item in sorted(below, key=lambda item: (item.created, int(item.id))):
            yield item.id
            yield from walk(item.id)

    return walk(None)


def recursive_walk(found: list[records.Comment], parent: str | None = None) -> Iterator[str]:
    below = [row for row in found if row.parent == parent]
    for row in sorted(below, key=lambda row: row.number):
        yield row.id
        yield from recursive_walk(found, row.id)


@pytest.mark.parametrize("levels", [8, 3])
@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("disqus/benbalter-1145.xml", 1145),
        ("disqus/laisky-209.xml", 209),
        ("disqus/evanlin-189.xml", 189),
        ("wxr/themeunittestdata-33.xml", 29),
    ],
)
def test_a_real_export_is_stored_whole_and_in_order(
    garden: records.Site, name: str, count: int, levels: int
):
    path, reader = real(name), READERS[name]
    items = {item.id: item for item in reader(path) if isinstance(item, source.Comment)}
    scheme = sorthash.Scheme(levels=levels)
    with importing.plan(reader, path, site=garden, scheme=scheme) as plan:
        assert write(plan, levels) == importing.Summary(count, 0, len(plan.threads))
        stored = rows()
        for thread in plan.threads:
            found = [row for row in stored if row.thread == thread.name.id]
            ids = source_ids(found, plan)
            assert ids == list(by_definition([items[each] for each in ids], levels))
            assert [row.id for row in found] == list(recursive_walk(found))
            listed = {row.id for row in found if row.listed}
            assert [row.id for row in floor.thread(thread.name)] == [
                row.id for row in found if row.id in listed
            ]
            assert repair.find_problems(scheme, thread.name) == []
        assert len(stored) == count
        assert write(plan, levels).added == 0
    assert rows() == stored
