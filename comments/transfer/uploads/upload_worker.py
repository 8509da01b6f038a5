"""Check and import uploaded files in a thread of a serving process.

Uploads take minutes, so they have their own thread, separate from the background worker's thread.

No error ends the thread. Nothing depends on this thread's memory: `upload_store` stores the state
of each upload, and each process looks for uploads that no process is working on.
"""

import logging
import threading
from collections.abc import Callable
from datetime import datetime

from comments import errors
from comments.store import connection
from comments.store.memory import per_process
from comments.transfer.uploads import upload_steps, upload_store, working_folder

LOOK_EVERY = 60.0  # Seconds between two searches for uploads whose processes have ended.

_log = logging.getLogger("flatthread")


class UploadThread:
    """Works on uploads in a thread.

    Args:
        store: the store to work on.
        secret: the service's secret.
        now: returns the current time.
    """

    def __init__(self, store: connection.Store, secret: str, now: Callable[[], datetime]) -> None:
        self._store = store
        self._secret = secret
        self._now = now
        self._nudged = threading.Event()
        self._is_open = True
        self._thread = threading.Thread(target=self._run, name="uploads", daemon=True)

    def start(self) -> None:
        """Start the thread.

        Call this method after the fork, because threads do not survive a fork.
        """
        _RUNNING.put(self._store, self)
        self._thread.start()

    def stop(self, seconds: float) -> bool:
        """Stop after the current batch; return whether the thread ended within `seconds`."""
        self._is_open = False
        self._nudged.set()
        if self._thread.ident is not None:
            self._thread.join(seconds)
        return not self._thread.is_alive()

    def nudge(self) -> None:
        """Look for work now."""
        self._nudged.set()

    def _run(self) -> None:
        with self._store.context():
            while self._is_open:
                go_on(self._secret, self._now, lambda: self._is_open)
                self._nudged.wait(LOOK_EVERY)
                self._nudged.clear()


_RUNNING = per_process.PerProcess[UploadThread | None](lambda: None)


def nudge() -> None:
    """Make this process's upload thread look for work; without a thread, cron does it."""
    thread = _RUNNING.get()
    if thread is not None:
        thread.nudge()


def go_on(
    secret: str, now: Callable[[], datetime], is_open: Callable[[], bool] = lambda: True
) -> None:
    """Work on all uploads that no other process works on, and delete old uploads and copies."""
    try:
        working_folder.remove_leftovers()
        for site in upload_store.waiting_sites(now()):
            upload_steps.do_next_step(site, secret, clock=now, is_open=is_open)
        upload_store.expire(now())
    except upload_steps.Stopped:
        pass
    except errors.Overloaded as error:
        _log.warning("Working on an uploaded file failed and will be retried: %s", error)
    except Exception:  # noqa: BLE001 - the next round tries again
        _log.exception("Working on an uploaded file failed and will be retried")
