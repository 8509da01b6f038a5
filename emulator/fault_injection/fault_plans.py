"""Faults on purpose: a seeded plan that refuses, delays, drops, hangs or kills.

Owns the plan while it runs: the counts of calls, who waits inside it, and the log of what it did.
The rules and the form of the document are `fault_rules`.

    engine.install_faults(faults.Plan.parse('{"rules": [{"rpc": "Commit", "drop": true}]}'))

What must stay true: a call is numbered, decided and logged in one step, so the n-th call meets the
same fault however the threads run. Every rule counts the calls it is about, whether or not another
rule struck them; the first rule that strikes is injected. A plan counts from its installation.
Nothing that waits outlives the plan, the client's patience or the process.

`point` marks the places inside the engine where a plan may strike. It finds the plan of the call
in hand: other engines of the process are left alone.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import threading
from collections import deque
from collections.abc import Callable
from typing import NamedTuple, Self

from emulator import errors
from emulator.fault_injection import fault_rules

MAX_LOGGED = 100_000  # of the last injections
_TICK = 1.0  # seconds after which a waiting thread looks whether the process is ending

_logger = logging.getLogger(__name__)
_in_hand = threading.local()
_installed = 0


class Injection(NamedTuple):
    """One fault that was injected: where, at which call of the rule's count, by which rule."""

    place: str
    call: int
    rule: int
    action: str


class Caller(NamedTuple):
    """Who waits for an answer.

    `timeout` is for how many seconds. `on_gone` takes what to call when nobody waits any more, and
    returns False if that is so already.
    """

    timeout: float | None = None
    on_gone: Callable[[Callable[[], object]], bool] | None = None


class Plan:
    """Rules, and what has come of them. Safe in any thread."""

    def __init__(self, rules: tuple[fault_rules.Rule, ...], seed: int = 0) -> None:
        self.rules = rules
        self.seed = seed
        self.forget_parent()
        self._is_installed = False
        self._start()

    @classmethod
    def parse(cls, document: object) -> Self:
        """Make a plan of a JSON text or of what it decodes to (see `fault_rules`).

        Raises:
            errors.InvalidArgument: it is no plan; the message names the field.
        """
        if isinstance(document, str | bytes):
            try:
                document = json.loads(document)
            except ValueError as error:
                raise errors.InvalidArgument(f"Fault plan: not JSON: {error}") from error
        seed, rules = fault_rules.parse(document)
        return cls(rules, seed)

    @property
    def log(self) -> list[Injection]:
        """What was injected since the installation, oldest first."""
        with self._lock:
            return list(self._log)

    @property
    def held(self) -> int:
        """How many calls have been struck and are not let go yet."""
        with self._lock:
            return self._held

    def install(self) -> None:
        """Begin to strike, with all counts at zero. For the engine."""
        global _installed  # noqa: PLW0603 - the one check of a point that no plan waits for
        with self._lock:
            _installed += not self._is_installed
            self._is_installed = True
            self._start()

    def remove(self) -> None:
        """Strike no more and let go of all that hangs. For the engine."""
        global _installed  # noqa: PLW0603 - as above
        with self._lock:
            _installed -= self._is_installed
            self._is_installed = False
            for woken in self._waiting:
                woken.set()

    def forget_parent(self) -> None:
        """Start afresh in a forked child, where another thread's lock would stay locked."""
        self._lock = threading.Lock()
        self._waiting: set[threading.Event] = set()
        self._held = 0

    def run(self, method: str, proceed: Callable[[], bytes], caller: Caller) -> bytes:
        """Answer one call, with the fault that the plan has for it."""
        _in_hand.plan, _in_hand.caller = self, caller
        try:
            struck = self._next(method, is_point=False)
            if struck is None:
                return proceed()
            rule = self.rules[struck.rule]
            if rule.action is fault_rules.Action.BATCH:
                _in_hand.batch = rule.batch_size(struck.call, seed=self.seed, position=struck.rule)
            if not rule.is_after:
                self._inject(rule)
                return proceed()
            try:
                return proceed()
            finally:
                # A refusal is an answer too, and lost like any other.
                self._inject(rule)
        finally:
            _in_hand.plan = _in_hand.batch = None

    def pass_point(self, name: str) -> None:
        """Inject what the plan has for this pass of a point."""
        struck = self._next(name, is_point=True)
        if struck is not None:
            self._inject(self.rules[struck.rule])

    def _start(self) -> None:
        self._counts = [0] * len(self.rules)
        self._struck = [0] * len(self.rules)
        self._log: deque[Injection] = deque(maxlen=MAX_LOGGED)

    def _next(self, place: str, *, is_point: bool) -> Injection | None:
        """Count a call or a pass and return what is to be injected."""
        found = None
        with self._lock:
            if not self._is_installed:
                return None
            for position, rule in enumerate(self.rules):
                if rule.place != place and (rule.place or is_point):
                    continue
                if self._strikes(position) and found is None:
                    found = position
            if found is None:
                return None
            action = self.rules[found].action
            injection = Injection(place, self._counts[found], found, action.value)
            self._log.append(injection)
            self._held += 1
        _logger.info("%s", injection)
        return injection

    def _strikes(self, position: int) -> bool:
        rule = self.rules[position]
        self._counts[position] += 1
        if rule.times is not None and self._struck[position] >= rule.times:
            return False
        strikes = rule.strikes(self._counts[position], seed=self.seed, position=position)
        self._struck[position] += strikes
        return strikes

    def _inject(self, rule: fault_rules.Rule) -> None:
        try:
            self._act(rule)
        finally:
            with self._lock:
                self._held -= 1

    def _act(self, rule: fault_rules.Rule) -> None:
        if rule.delay:
            self._wait(rule.delay)
        match rule.action:
            case fault_rules.Action.STATUS:
                raise errors.Injected(rule.status, rule.message)
            case fault_rules.Action.DROP:
                raise errors.Dropped("The connection was dropped by the fault plan.")
            case fault_rules.Action.HANG:
                self._wait(float("inf"))
            case fault_rules.Action.KILL:
                os.kill(os.getpid(), signal.SIGKILL)
            case _:
                return

    def _wait(self, seconds: float) -> None:
        """Wait, but no longer than the plan is installed and the caller waits.

        Raises:
            errors.DeadlineExceeded: the caller has given up.
            errors.Unavailable: the process ends.
        """
        caller: Caller = _in_hand.caller
        woken = threading.Event()
        gone = threading.Event()

        def leave() -> None:
            gone.set()
            woken.set()

        if caller.on_gone is not None and not caller.on_gone(leave):
            leave()
        with self._lock:
            if not self._is_installed:
                return
            self._waiting.add(woken)
        patience = float("inf") if caller.timeout is None else caller.timeout
        is_woken = _sleep(min(seconds, patience), woken)
        with self._lock:
            self._waiting.discard(woken)
        if gone.is_set() or (patience <= seconds and not is_woken):
            raise errors.DeadlineExceeded("The client gave up while a fault held the call.")


def _sleep(seconds: float, woken: threading.Event) -> bool:
    """Wait for an event, tell whether it came; refuse when the process ends."""
    while seconds > 0:
        if woken.wait(min(seconds, _TICK)):
            return True
        seconds -= _TICK
        if not threading.main_thread().is_alive():
            raise errors.Unavailable("The process ends.")
    return False


def point(name: str) -> None:
    """Mark a place of the engine by its name: here the plan of the call in hand may strike."""
    if not _installed:
        return
    plan = getattr(_in_hand, "plan", None)
    if plan is not None:
        plan.pass_point(name)


def batch_size(most: int) -> int:
    """Return how many results a batch may hold: fewer than `most` if a rule cuts the call."""
    if not _installed:
        return most
    cut: int | None = getattr(_in_hand, "batch", None)
    return most if cut is None else min(cut, most)
