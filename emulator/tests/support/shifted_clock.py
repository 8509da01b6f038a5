"""A running clock that a test can move forward."""

import time


class ShiftedClock:
    """Real time plus the seconds that a test adds."""

    def __init__(self) -> None:
        self.ahead = 0.0

    def __call__(self) -> float:
        return time.time() + self.ahead
