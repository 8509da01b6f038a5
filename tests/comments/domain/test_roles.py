"""Claims about roles: each allows what its row says, where it is held and nowhere else."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comments.domain import roles

SITES = ("blog", "shop", "b", "blo")
GRANTS = st.builds(
    roles.Grant, st.sampled_from(roles.GRANTED), st.sampled_from((*SITES, roles.SERVICE))
)


def rights(role: roles.Role) -> set[roles.Right]:
    grants = [roles.Grant(role, "blog")]
    return {right for right in roles.Right if roles.may(grants, right, "blog")}


@pytest.mark.parametrize(
    ("role", "allowed"),
    [
        (roles.Role.GUEST, {"write"}),
        (roles.Role.AUTHOR, {"write", "profile"}),
        (roles.Role.MODERATOR, {"write", "profile", "moderate"}),
        (roles.Role.OWNER, {"write", "profile", "moderate", "manage"}),
    ],
)
def test_a_role_allows_what_its_row_says(role: roles.Role, allowed: set[str]) -> None:
    assert {right.value for right in rights(role)} == allowed


def test_each_role_allows_what_the_one_before_it_does() -> None:
    for less, more in zip(list(roles.Role), list(roles.Role)[1:], strict=False):
        assert rights(less) < rights(more)


@given(
    st.lists(GRANTS, max_size=4),
    st.sampled_from(list(roles.Right)),
    st.sampled_from((*SITES, roles.SERVICE)),
)
def test_a_role_counts_on_its_site_and_on_the_service_everywhere(
    grants: list[roles.Grant], right: roles.Right, site: str
) -> None:
    expected = any(right in rights(role) and held in {site, "*"} for role, held in grants)
    assert roles.may(grants, right, site) == expected


@pytest.mark.parametrize("right", list(roles.Right))
def test_no_site_is_never_every_site(right: roles.Right) -> None:
    grants = [
        roles.Grant(roles.Role.OWNER, roles.SERVICE),
        roles.Grant(roles.Role.OWNER, ""),
    ]
    assert not roles.may(grants, right, "")


def test_whoever_holds_more_has_the_role_too() -> None:
    owner = [roles.Grant(roles.Role.OWNER, "blog")]
    assert roles.has(owner, roles.Role.MODERATOR, "blog")
    assert not roles.has(owner, roles.Role.MODERATOR, "shop")
    moderator = [roles.Grant(roles.Role.MODERATOR, "blog")]
    assert not roles.has(moderator, roles.Role.OWNER, "blog")
    assert not roles.has([], roles.Role.MODERATOR, "blog")
