"""Names that claim a role are refused: a role word alone or with the site's name."""

import itertools
import re
import subprocess
import sys

import pytest
from flask.testing import FlaskClient
from hypothesis import given
from hypothesis import strategies as st

from comments.domain import presentation, records
from comments.domain.text import role_names
from comments.store import connection
from comments.web.api.callers import api_tokens
from comments.web.rendering import nesting
from tests.conftest import ROOT
from tests.support.people import account_holders, api_requests
from tests.support.threads import sample_threads

SITE = ("blog", "www.garden-club.example")


@pytest.mark.parametrize(
    "name",
    [
        "owner", "OWNERS", "Author", "mod", "Mods", "sysadm1n", "\u041cod", "m\u00f6derator",
        "\u13aa\u13a0\u13b7\u026an", "st\u0430ff", "0wner", "\uff4f\uff57\uff4e\uff45\uff52",
        # Letters that UTS #39 does not list: Coptic, Han, Old Italic, Canadian, turned.
        "\u2c81dmin", "\u5342dmin", "\U00010300dmin", "\u15e9\u15ea\u15f0I\u144e", "\u0250dmin",
        "\u039bDMIN", "AD\u039cI\u039d",
        # Other languages.
        "Администратор", "Modératrice", "Betreiber", "مدير", "管理者", "モデレーター", "管理员",
        "관리자",
    ],
)  # fmt: skip
def test_a_role_word_is_refused_as_a_name(name: str) -> None:
    assert role_names.speaks_for_site(name)


@pytest.mark.parametrize(
    "name",
    [
        "Blog Admin", "admin of the blog", "Garden Club Staff", "Staff @ Garden-Club",
        "garden-club.example support", "www.garden-club.example owner", "BL0G \u0430dmin",
        "moderators of garden club", "Blog\u306e管理者", "Administrateur du Blog",
        "\u2c81dmin of Blog",
    ],
)  # fmt: skip
def test_a_role_word_with_the_sites_name_is_refused_on_that_site(name: str) -> None:
    assert role_names.speaks_for_site(name, SITE)
    assert not role_names.speaks_for_site(name)
    assert not role_names.speaks_for_site(name, ("other", "else.example"))


@pytest.mark.parametrize(
    "name",
    [
        "Ann", "Blog", "Garden Club", "Adminah", "Modesty", "Owen", "Admin of nothing", "Staffan",
        "\u041c\u0430\u0448\u0430", "\u5f20\u4f1f", "Author Ashe", "\u0639\u0644\u064a", "Ownerson",
        "José", "Łukasz", "Dmitri Иванов", "mod大", "مالك", "Author \u5927\u5c0f",
    ],
)  # fmt: skip
def test_other_names_are_accepted(name: str) -> None:
    assert not role_names.speaks_for_site(name, SITE)


_PARTS = st.sampled_from(
    [
        *role_names.WORDS, "of", "at", "the", "from", "for", "s", "S", "b", "blog", "Blog",
        "garden", "club", "www", "example", "-", " ", " @ ", "0", "\u0430", "rn", "cl", "x",
    ]
)  # fmt: skip
_NAMES = st.lists(_PARTS, max_size=6).map("".join)
_SITES = st.just(SITE) | st.lists(_NAMES, max_size=3).map(tuple)
_CLAIMS = (
    st.tuples(
        st.sampled_from(role_names.WORDS),
        st.sampled_from(["", "s"]),
        st.sampled_from(["", " of ", " at the ", " @ "]),
        st.sampled_from(["blog", "Garden Club", "www.garden-club.example", "Gardeners"]),
    )
    .flatmap(st.permutations)
    .map("".join)
)


@given(_NAMES | _CLAIMS, _SITES)
def test_every_order_of_role_link_and_site_is_refused_and_nothing_else(
    name: str, site: tuple[str, ...]
) -> None:
    found = role_names.skeleton(name.replace(" @ ", " at "))
    roles = [role_names.skeleton(f"{word}{end}") for word in role_names.WORDS for end in ("", "s")]
    links = ["", "of", "at", "the", "ofthe", "from", "for", "von", "vom", "de", "du"]
    called: set[str] = set()
    for text in site:
        labels = re.findall("[a-z0-9]+", text.lower().removeprefix("www."))
        said = [text, "".join(labels), "".join(labels[:-1]), *labels[:-1][-1:], *labels[:1]]
        called |= {each for each in map(role_names.skeleton, said) if len(each) >= 2}
    reserved = {*roles}
    for role, link, each in itertools.product(roles, links, called):
        reserved |= {f"{role}{link}{each}", f"{each}{link}{role}"}
    assert role_names.speaks_for_site(name, site) == (found in reserved)


@given(st.text(alphabet=st.characters(max_codepoint=0x7F)))
def test_plain_ascii_has_the_skeleton_of_its_full_width_form(text: str) -> None:
    wide = "".join(chr(ord(c) + 0xFEE0) if "!" <= c <= "~" else c for c in text)
    assert role_names.skeleton(text) == role_names.skeleton(wide)


def test_a_plain_name_does_not_import_the_library() -> None:
    """The library's import takes 0.2 s, which is too long for a cold start."""
    program = (
        "import sys; from comments.domain.text import cleaning; "
        "cleaning.clean_name('Ann', ('blog',));"
        "assert 'disarm' not in sys.modules; cleaning.clean_name('\\u0410nn');"
        "assert 'disarm' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=True)


def _post(client: FlaskClient, name: str, token: str = "") -> dict:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    response = client.post(api_requests.THREAD, json={"name": name, "body": "b"}, headers=headers)
    assert response.status_code == 201, response.text
    return api_requests.answer(response)


def test_the_server_marks_guests_members_and_staff_wherever_they_are_shown(
    client: FlaskClient, store: connection.Store
) -> None:
    tokens = {}
    roles = {
        "bob": (),
        "ada": (account_holders.moderator(),),
        "elsewhere": (account_holders.moderator("other"),),
    }
    for login, grants in roles.items():
        account = account_holders.account(login, *grants, password="")
        member = api_tokens.Member("demo", account.id, account.epoch)
        tokens[login] = api_tokens.sign(member, secret=account_holders.SECRET)
    guest = _post(client, "Ada")  # Accepted, although a moderator has this name
    _post(client, "Ada", guest["token"])
    posted = [_post(client, "x", tokens[login]) for login in ("bob", "ada", "elsewhere")]
    kinds = ["guest", "guest", "member", "staff", "member"]
    assert [each["comment"]["author"]["kind"] for each in (guest, *posted)] == kinds[1:]
    rows = api_requests.answer(client.get(api_requests.THREAD))["comments"]
    assert [row["author"]["kind"] for row in rows] == kinds
    html = client.get("/embed/demo?thread=t").text
    for kind, badge, count in (("member", "Member", 2), ("staff", "Moderator", 1)):
        assert html.count(f'data-kind="{kind}">{badge}</span>') == count
    assert html.count("data-kind=") == 3
    for field in ("kind", "is_staff", "by_staff"):
        sent = {"name": "Eve", "body": "b", field: "staff"}
        api_requests.refused(client.post(api_requests.THREAD, json=sent), 400, field)


def test_a_role_with_the_sites_name_is_refused_to_all_but_staff(
    client: FlaskClient, store: connection.Store
) -> None:
    sent = {"name": "Demo Admin", "body": "b"}
    assert (
        api_requests.refused(client.post(api_requests.THREAD, json=sent), 400, "name")
        == "reserved-name"
    )
    account = account_holders.account("admin", account_holders.moderator(), password="")
    member = api_tokens.Member("demo", account.id, account.epoch)
    made = _post(client, "x", api_tokens.sign(member, secret=account_holders.SECRET))
    assert made["comment"]["author"] == {"name": "Admin", "website": "", "kind": "staff"}


def test_a_fragment_of_an_earlier_release_has_no_mark(site: records.Site, store: object) -> None:
    """Stored buckets contain fragments without a mark until their comments are compacted again."""
    made = presentation.fragment(sample_threads.post(site, "text"))
    old = made.replace(b',"kind":"guest"', b"")
    assert old != made
    shown = presentation.read(old, 3)
    assert (shown.author, shown.replies) == (presentation.PublicAuthor("author of text", ""), 3)
    assert nesting.kind_of(shown) == ""
    assert nesting.kind_of(presentation.read(made, 3)) == "guest"
