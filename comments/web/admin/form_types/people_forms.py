"""The queries and forms about accounts, authors, invitations and sign-in providers."""

from typing import Literal

import msgspec

from comments.web.admin.form_types import form_fields
from comments.web.http.decode.parameters import Typed

GrantedRole = Literal["moderator", "owner"]


class AuthorQuery(form_fields.CursorQuery, frozen=True):
    """An author on a site."""

    id: Typed = ""


class BanForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A form that bans an author or lifts a ban.

    The ban is permanent if `days` is empty. Checked boxes are sent as "on".
    """

    act: Literal["ban", "unban", "restore"]
    days: Typed = ""
    shadow: form_fields.Box = ""
    hide: form_fields.Box = ""
    network_days: Typed = ""
    mailbox: form_fields.Box = ""
    reason: Typed = ""


class AuthorLinkForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A form that links an author with `other`, ends their link, or allows claims of the author.

    `other` is an author id, or the id of a comment.
    """

    act: Literal["link", "unlink", "allow"]
    other: Typed = ""
    reason: Typed = ""


class InvitationForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An invitation: the role, its site or `roles.SERVICE`, and the only address that can accept.

    `current` is the password of the owner who invites.
    """

    current: Typed
    role: GrantedRole
    site: Typed
    email: Typed = ""


class ModeratorInvitationForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An invitation of a moderator by an owner of the site, with the owner's password."""

    current: Typed
    email: Typed = ""


class ModeratorForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A change of a moderator's role by an owner of the site, with the owner's password."""

    id: Typed
    current: Typed
    role: Literal["owner", "none"]


class WithdrawalForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The id of a pending invitation to withdraw."""

    id: Typed


class PersonQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The id of an account."""

    id: Typed = ""


class PersonForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A change of an account by an owner, who confirms the change with their own password.

    `role` and `site` apply only to the act "role"; the role "none" removes the role on the site.
    """

    id: Typed
    current: Typed
    act: Literal["role", "sign-out", "reset", "reset-all", "remove"]
    role: GrantedRole | Literal["none"] = "none"
    site: Typed = ""


class PersonSearchQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A person: a comment's id, an author id, or an account's name, mail address or id."""

    who: Typed = ""


class PersonalDataForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An export or erasure of an author's data, which an owner confirms with their password."""

    author: Typed
    current: Typed = ""


class AddressForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The erasure of a mail address, which an owner confirms with their password."""

    email: Typed
    current: Typed = ""


class ProviderForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A provider to add. `current` is the password of the owner."""

    name: Typed
    issuer: Typed
    client: Typed
    secret: Typed
    title: Typed = ""
    current: Typed = ""


class ProviderChangeForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A change of the provider `name`; only "save" uses `sites` and `staff`."""

    act: Literal["check", "save", "remove"]
    name: Typed
    sites: form_fields.TextLine = ""
    staff: form_fields.Box = ""
    current: Typed = ""
