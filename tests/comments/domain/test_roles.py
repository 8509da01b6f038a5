"""Each role has exactly the permissions in its table row, on its own site and nowhere else."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comments.domain.moderation import roles

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
def test_a_role_allows_the_rights_in_its_row(role: roles.Role, allowed: set[str]) -> None:
    assert {right.value for right in rights(role)} == allowed


def test_each_role_includes_the_rights_of_the_one_before() -> None:
    for less, more in zip(list(roles.Role), list(roles.Role)[1:], strict=False):
        assert rights(less) < rights(more)


@given(
    st.lists(GRANTS, max_size=4),
    st.sampled_from(list(roles.Right)),
    st.sampled_from((*SITES, roles.SERVICE)),
)
def test_a_role_applies_to_its_site_and_a_service_role_everywhere(
    grants: list[roles.Grant], right: roles.Right, site: str
) -> None:
    expected = any(right in rights(role) and held in {site, "*"} for role, held in grants)
    assert roles.may(grants, right, site) == expected


@pytest.mark.parametrize("right", list(roles.Right))
def test_no_site_id_means_every_site(right: roles.Right) -> None:
    grants = [
        roles.Grant(roles.Role.OWNER, roles.SERVICE),
        roles.Grant(roles.Role.OWNER, ""),
    ]
    assert not roles.may(grants, right, "")


def test_a_higher_role_includes_the_lower_ones() -> None:
    owner = [roles.Grant(roles.Role.OWNER, "blog")]
    assert roles.has(owner, roles.Role.MODERATOR, "blog")
    assert not roles.has(owner, roles.Role.MODERATOR, "shop")
    moderator = [roles.Grant(roles.Role.MODERATOR, "blog")]
    assert not roles.has(moderator, roles.Role.OWNER, "blog")
    assert not roles.has([], roles.Role.MODERATOR, "blog")
