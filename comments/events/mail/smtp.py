"""Couriers: hand messages to an SMTP server, and say what its answers mean.

A message is handed over once. Whether and when to try again is for the caller (`planner`).
"""

import contextlib
import smtplib
import ssl
from typing import Self

from comments import setting_values
from comments.domain import outcomes
from comments.events.mail import mime

TIMEOUT = 10.0  # seconds, of each step; the server is the operator's own choice
_GOODBYE = 421  # the server ends the session, whatever it was asked
_PERMANENT = 500  # the first of the codes that another attempt does not change


def send(server: setting_values.Smtp, message: mime.Message) -> outcomes.Outcome:
    """Hand one message to the server once; see `SmtpClient.send`."""
    with SmtpClient(server) as courier:
        return courier.send(message)


class SmtpClient:
    """Hands messages to a server, in one session as long as that lasts. Ends with its `with`."""

    def __init__(self, server: setting_values.Smtp) -> None:
        self._server = server
        self._session: smtplib.SMTP | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        # The messages were taken; how the server parts does not matter any more.
        if self._session is not None:
            with contextlib.suppress(smtplib.SMTPException, OSError):
                self._session.quit()
        self._drop()

    def send(self, message: mime.Message) -> outcomes.Outcome:
        """Hand a message to the server once.

        A refusal for good (5xx) of the recipient or the message ends it. Whatever is not about
        this message, a wrong password among it, is worth another attempt.
        """
        is_used = self._session is not None
        outcome = self._tried(message)
        if outcome.is_general:
            self._drop()
            if is_used:
                # Servers end a session after a while, or after so many messages.
                outcome = self._tried(message)
        return outcome

    def _tried(self, message: mime.Message) -> outcomes.Outcome:
        try:
            if self._session is None:
                self._session = _connected(self._server)
            self._session.sendmail(message.sender, message.recipient, message.raw)
        except smtplib.SMTPRecipientsRefused as error:
            return _refused(next(iter(error.recipients.values()))[0])
        except smtplib.SMTPAuthenticationError as error:
            return _unsent(f"did not let us in: {error.smtp_code}")
        except (smtplib.SMTPDataError, smtplib.SMTPSenderRefused) as error:
            return _refused(error.smtp_code)
        except (smtplib.SMTPException, OSError) as error:
            return _unsent(type(error).__name__)
        return outcomes.Outcome(outcomes.End.DELIVERED, "sent")

    def _drop(self) -> None:
        if self._session is not None:
            self._session.close()
            self._session = None


def _connected(server: setting_values.Smtp) -> smtplib.SMTP:
    # Loading the system's certificates takes 30 ms.
    is_secure = server.security is not setting_values.Security.NONE
    context = ssl.create_default_context(cafile=server.ca_file or None) if is_secure else None
    if server.security is setting_values.Security.TLS:
        session: smtplib.SMTP = smtplib.SMTP_SSL(
            server.host, server.port, timeout=TIMEOUT, context=context
        )
    else:
        session = smtplib.SMTP(server.host, server.port, timeout=TIMEOUT)
    try:
        if server.security is setting_values.Security.STARTTLS:
            session.starttls(context=context)
        if server.user:
            session.login(server.user, server.password)
    except BaseException:
        session.close()
        raise
    return session


def _refused(code: int) -> outcomes.Outcome:
    if code == _GOODBYE:
        return _unsent(f"refused: {code}")
    end = outcomes.End.GIVE_UP if code >= _PERMANENT else outcomes.End.RETRY
    return outcomes.Outcome(end, f"refused: {code}")


def _unsent(reason: str) -> outcomes.Outcome:
    return outcomes.Outcome(outcomes.End.RETRY, reason, is_general=True)
