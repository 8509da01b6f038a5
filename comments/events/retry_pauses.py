"""The rule of retries: how long a failed delivery waits, and how many attempts it gets.

The rule applies to events and to messages.
"""

from datetime import timedelta

FIRST_PAUSE = timedelta(seconds=10)  # Pause after a failure, doubled after each further failure.
LONGEST_PAUSE = timedelta(hours=1)
MOST_ATTEMPTS = 24  # These attempts take most of a day; then an operator has to decide.


def pause(attempts: int) -> timedelta:
    """Return the pause after a given number of failed attempts."""
    doubled = min(max(0, attempts - 1), 20)
    return min(LONGEST_PAUSE, FIRST_PAUSE * (1 << doubled))
