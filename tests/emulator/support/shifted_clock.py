"""A clock that a test moves while time goes on."""

import time


class ShiftedClock:
    """Real time plus what a test adds."""

    def __init__(self) -> None:
        self.ahead = 0.0

    def __call__(self) -> float:
        return time.time() + self.ahead
