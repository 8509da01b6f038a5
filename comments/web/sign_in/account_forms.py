"""The forms of the accounts' own pages."""

from typing import Annotated

import msgspec

from comments.accounts import passkeys
from comments.web.http.decode import parameters

PasskeyAnswer = Annotated[str, msgspec.Meta(max_length=passkeys.LONGEST_ANSWER)]


class SignIn(parameters.Request, frozen=True):
    """A sign-in with a password and, if the account requires one, an authenticator's code."""

    login: parameters.Typed
    password: parameters.Typed
    code: parameters.Typed = ""


class OneTimeLinkForm(parameters.Request, frozen=True):
    """The token of a one-time link."""

    token: parameters.Typed


class Accepted(parameters.Request, frozen=True):
    """The token of an invitation, and the new account's name, credentials and optional address."""

    token: parameters.Typed = ""
    name: parameters.Typed = ""
    login: parameters.Typed = ""
    password: parameters.Typed = ""
    email: parameters.Typed = ""


class PasswordResetForm(parameters.Request, frozen=True):
    """The token of a reset link, the new password, and an authenticator's code."""

    token: parameters.Typed = ""
    password: parameters.Typed = ""
    code: parameters.Typed = ""


class Confirmed(parameters.Request, frozen=True):
    """The current password, which a signed-in user must enter again to confirm a change."""

    current: parameters.Typed


class NewPassword(Confirmed, frozen=True):
    """The current and the new password."""

    password: parameters.Typed


class NewAddress(Confirmed, frozen=True):
    """The current password and the new mail address."""

    email: parameters.Typed


class NewAuthenticator(Confirmed, frozen=True):
    """The secret of a new authenticator, and the code that the authenticator shows."""

    key: parameters.Typed
    code: parameters.Typed


class NewPasskey(parameters.Request, frozen=True):
    """The name of a new passkey, and what the authenticator answered, as JSON."""

    name: parameters.Typed
    answer: PasskeyAnswer


class RemovedPasskey(Confirmed, frozen=True):
    """The id of a passkey to remove."""

    id: parameters.Typed


class SignedChallenge(parameters.Request, frozen=True):
    """What the authenticator answered to a sign-in, as JSON."""

    answer: PasskeyAnswer


class EndedSession(parameters.Request, frozen=True):
    """The id of a moderation session to end."""

    session: Annotated[str, msgspec.Meta(pattern="^[a-z2-7]{26}$", max_length=26)]
