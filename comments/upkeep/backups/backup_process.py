"""Start the nightly backup of a serving process, in a separate process with low priority.

A backup checks every entity; in the serving process, this would take processor time from requests.
"""

import logging
import subprocess
from collections.abc import Callable, Sequence
from datetime import datetime

from comments import config
from comments.upkeep.backups import nightly_backup

_log = logging.getLogger("flatthread")


class BackupProcess:
    """Starts the backup command when a nightly backup is due.

    Args:
        settings: the settings of the service.
        command: makes the backup if one is due, logs the result, and removes old backups.
        now: returns the current time.
    """

    def __init__(
        self, settings: config.Settings, command: Sequence[str], now: Callable[[], datetime]
    ) -> None:
        self._settings = settings
        self._command = command
        self._now = now
        self._process: subprocess.Popen[bytes] | None = None
        self._earliest: datetime | None = None

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def step(self) -> None:
        """Start the command if a backup is due, unless it is running or was started recently."""
        now = self._now()
        if self.is_running or (self._earliest is not None and now < self._earliest):
            return
        if not nightly_backup.is_due(self._settings, now=now):
            return
        # The disk may be too full to record the attempt.
        self._earliest = now + nightly_backup.RETRY
        try:
            # The command writes to the service's log.
            self._process = subprocess.Popen(  # noqa: S603 - our own command
                self._command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL
            )
        except OSError as error:
            _log.error("The nightly backup could not be started: %s", error.strerror)

    def stop(self, seconds: float) -> bool:
        """Stop a running command; return whether it ended in time.

        If the command is stopped, it leaves no unfinished files.
        """
        if self._process is None:
            return True
        self._process.terminate()
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True
