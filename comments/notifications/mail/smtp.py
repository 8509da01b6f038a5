"""An SMTP client that sends messages and interprets the server's responses.

The client sends each message once, and sends it again only if a reused session has ended. The
caller (`planner`) decides whether and when to retry after a failure.
"""

import contextlib
import smtplib
import ssl
from typing import Self

from comments import setting_values
from comments.domain import outcomes
from comments.notifications.mail import mime

TIMEOUT = 10.0  # Seconds per step. A session needs no limit, because the operator chose the server.
_GOODBYE = 421  # The response code with which the server ends the session.
_PERMANENT = 500  # After a response with this code or a higher code, a retry does not help.


def send(server: setting_values.Smtp, message: mime.MailMessage) -> outcomes.Outcome:
    """Send one message (see `SmtpClient.send`)."""
    with SmtpClient(server) as client:
        return client.send(message)


def fault(server: setting_values.Smtp) -> str:
    """Connect and sign in without sending anything; return what failed, or ""."""
    try:
        _connect(server).quit()
    except smtplib.SMTPAuthenticationError as error:
        return f"sign-in refused: {error.smtp_code}"
    except (smtplib.SMTPException, OSError) as error:
        return getattr(error, "strerror", None) or f"{type(error).__name__}: {error}"
    return ""


class SmtpClient:
    """Sends messages to a server, and reuses one session as long as the session lasts.

    Use the client in a `with` statement.
    """

    def __init__(self, server: setting_values.Smtp) -> None:
        self._server = server
        self._session: smtplib.SMTP | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        # The server has already accepted the messages, so errors while closing the session are
        # ignored.
        if self._session is not None:
            with contextlib.suppress(smtplib.SMTPException, OSError):
                self._session.quit()
        self._drop()

    def send(self, message: mime.MailMessage) -> outcomes.Outcome:
        """Send a message once.

        If the server permanently refuses (5xx) the recipient or the message, the outcome is final.
        Errors that do not concern this message, such as a wrong password, are worth a retry.
        """
        is_used = self._session is not None
        outcome = self._attempt(message)
        if outcome.is_general:
            self._drop()
            if is_used:
                # Servers end a session after some time or number of messages, so try once more.
                outcome = self._attempt(message)
        return outcome

    def _attempt(self, message: mime.MailMessage) -> outcomes.Outcome:
        try:
            if self._session is None:
                self._session = _connect(self._server)
            self._session.sendmail(message.sender, message.recipient, message.raw)
        except smtplib.SMTPRecipientsRefused as error:
            return _refusal(next(iter(error.recipients.values()))[0])
        except smtplib.SMTPAuthenticationError as error:
            return _general_failure(f"sign-in refused: {error.smtp_code}")
        except (smtplib.SMTPDataError, smtplib.SMTPSenderRefused) as error:
            return _refusal(error.smtp_code)
        except (smtplib.SMTPException, OSError) as error:
            return _general_failure(type(error).__name__)
        return outcomes.Outcome(outcomes.End.DELIVERED, "sent")

    def _drop(self) -> None:
        if self._session is not None:
            self._session.close()
            self._session = None


def _connect(server: setting_values.Smtp) -> smtplib.SMTP:
    # Loading the system's certificates takes 30 ms, so do it only when needed.
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


def _refusal(code: int) -> outcomes.Outcome:
    if code == _GOODBYE:
        return _general_failure(f"refused: {code}")
    end = outcomes.End.GIVE_UP if code >= _PERMANENT else outcomes.End.RETRY
    return outcomes.Outcome(end, f"refused: {code}")


def _general_failure(reason: str) -> outcomes.Outcome:
    return outcomes.Outcome(outcomes.End.RETRY, reason, is_general=True)
