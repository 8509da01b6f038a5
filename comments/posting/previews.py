"""Preview a comment: render a text as it would be stored.

A preview neither reads nor writes the store, but it takes as much processor time as a post and
requires no proof of work. Each process therefore limits the number of previews per network and
minute. The limit protects the processor time of one process, so it is not shared between processes.
Counting each preview in the store would also cost more than the preview. Previews also count toward
the site's daily budget.
"""

import threading
import time
from collections.abc import Callable

from comments import errors
from comments.domain.crypto import client_networks
from comments.domain.text import cleaning, rendering
from comments.limits import budgets, usage
from comments.limits.site_request import SiteRequest
from comments.store.memory import per_process

_MINUTE = 60.0
MOST_NETWORKS = (
    50_000  # Networks that are counted separately, in about 8 MB; all others share one count
)


class Pace:
    """The number of previews for each network in the current minute."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._minute = 0
        self._made: dict[str, int] = {}

    def wait(self, network: str, most: int) -> int:
        """Count a preview and return 0, or return the seconds to wait if the limit is reached."""
        wider = ((network, 1), *client_networks.around(network))
        with self._lock:
            now = self._clock()
            self._turn(int(now // _MINUTE))
            counted = [(self._name(name), factor) for name, factor in wider]
            if any(self._made.get(name, 0) >= most * factor for name, factor in counted):
                return max(1, round(_MINUTE - now % _MINUTE))
            for name, _ in counted:
                self._made[name] = self._made.get(name, 0) + 1
        return 0

    def _turn(self, minute: int) -> None:
        if minute != self._minute:
            self._minute, self._made = minute, {}

    def _name(self, name: str) -> str:
        is_full = len(self._made) >= MOST_NETWORKS
        return client_networks.UNKNOWN if is_full and name not in self._made else name


_PACE = per_process.PerProcess(Pace)


def render(body: str, request: SiteRequest) -> str:
    """Return the HTML that would be stored for a comment with this text.

    Raises:
        errors.BadInput: the body is not valid, so posting it would also fail.
        errors.TooMany: the network requested too many previews, or the site's budget is spent.
    """
    site, now, most = request.site, request.now, request.settings.previews_per_network
    budgets.check_previews(site, now=now)
    network = request.sender.network
    wait = _PACE.get().wait(network, most) if most else 0
    if wait:
        raise errors.TooMany("too-many-previews", retry_after=wait)
    usage.note(site.id, usage.UsageAmounts(previews=1), now=now)
    return rendering.render_markdown(cleaning.clean_body(body))
