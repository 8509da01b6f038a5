"""Fault plans: a seeded plan that refuses, delays, drops or hangs calls, or kills the process.

Owns the state of a running plan: the call counts, the delayed calls, and the log of injected
faults. `fault_rules` owns the rules and the document format.

    engine.install_faults(fault_plans.Plan.parse('{"rules": [{"rpc": "Commit", "drop": true}]}'))

A single step under a lock numbers a call, chooses its fault and logs the fault, so thread
scheduling makes no difference. Every rule counts all calls that it matches since the plan was
installed, including calls that another rule strikes. If several rules strike a call, the first
rule's fault is injected. A delayed call stops waiting when the plan is removed, the client gives up
or the process ends.

`point` marks a place inside the engine where a plan may strike. A point uses the plan of the
current call, so a plan never affects other engines in the process.
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

from datastore_emulator import errors
from datastore_emulator.fault_injection import fault_rules

MAX_LOGGED = 100_000  # Maximum number of injections that the log keeps.
_TICK = 1.0  # Seconds between two checks whether the process is ending.

_logger = logging.getLogger(__name__)
_in_hand = threading.local()
_installed = 0


class Injection(NamedTuple):
    """One injected fault: its place, the rule's count of calls, the rule and its action."""

    place: str
    call: int
    rule: int
    action: str


class Caller(NamedTuple):
    """The client that waits for an answer.

    `timeout` is the client's deadline in seconds from now. `on_gone` registers a callback that runs
    when the client gives up; it returns False if the client has already given up.
    """

    timeout: float | None = None
    on_gone: Callable[[Callable[[], object]], bool] | None = None


class Plan:
    """Fault rules and their counters. Safe for use from any thread."""

    def __init__(self, rules: tuple[fault_rules.Rule, ...], seed: int = 0) -> None:
        self.rules = rules
        self.seed = seed
        self.forget_parent()
        self._is_installed = False
        self._start()

    @classmethod
    def parse(cls, document: object) -> Self:
        """Create a plan from a JSON text or the decoded object (see `fault_rules`).

        Raises:
            errors.InvalidArgument: The document is not a valid plan; the message names the field.
        """
        if isinstance(document, str | bytes):
            try:
                document = json.loads(document)
            except ValueError as error:
                raise errors.InvalidArgument(f"Fault plan: invalid JSON: {error}") from error
        seed, rules = fault_rules.parse(document)
        return cls(rules, seed)

    @property
    def log(self) -> list[Injection]:
        """The faults injected since the installation, oldest first."""
        with self._lock:
            return list(self._log)

    @property
    def pending_count(self) -> int:
        """The number of struck calls whose fault has not finished."""
        with self._lock:
            return self._held

    def install(self) -> None:
        """Start injecting faults and reset all counts to zero. Called by the engine."""
        global _installed  # noqa: PLW0603 - keeps points cheap while no plan is installed
        with self._lock:
            _installed += not self._is_installed
            self._is_installed = True
            self._start()

    def remove(self) -> None:
        """Stop injecting faults and release all delayed calls. Called by the engine."""
        global _installed  # noqa: PLW0603 - as above
        with self._lock:
            _installed -= self._is_installed
            self._is_installed = False
            for woken in self._waiting:
                woken.set()

    def forget_parent(self) -> None:
        """Reset the lock in a forked child, where a lock held by another thread stays locked."""
        self._lock = threading.Lock()
        self._waiting: set[threading.Event] = set()
        self._held = 0

    def run(self, method: str, proceed: Callable[[], bytes], caller: Caller) -> bytes:
        """Answer one call, and inject the plan's fault for it, if any."""
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
                # The client also loses an answer that is an error.
                self._inject(rule)
        finally:
            _in_hand.plan = _in_hand.batch = None

    def pass_point(self, name: str) -> None:
        """Inject the plan's fault, if any, when a call passes a point."""
        struck = self._next(name, is_point=True)
        if struck is not None:
            self._inject(self.rules[struck.rule])

    def _start(self) -> None:
        self._counts = [0] * len(self.rules)
        self._struck = [0] * len(self.rules)
        self._log: deque[Injection] = deque(maxlen=MAX_LOGGED)

    def _next(self, place: str, *, is_point: bool) -> Injection | None:
        """Count a call or a pass of a point, and return the fault to inject."""
        first = None
        with self._lock:
            if not self._is_installed:
                return None
            for position, rule in enumerate(self.rules):
                if rule.place != place and (rule.place or is_point):
                    continue
                if self._count_call(position) and first is None:
                    first = position
            if first is None:
                return None
            action = self.rules[first].action
            injection = Injection(place, self._counts[first], first, action.value)
            self._log.append(injection)
            self._held += 1
        _logger.info("%s", injection)
        return injection

    def _count_call(self, position: int) -> bool:
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
        """Wait while the plan is installed and the client still waits.

        Raises:
            errors.DeadlineExceeded: The client has given up.
            errors.Unavailable: The process is ending.
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
            raise errors.DeadlineExceeded("The client gave up while a fault delayed the call.")


def _sleep(seconds: float, woken: threading.Event) -> bool:
    """Wait for an event and return whether it occurred; raise an error if the process is ending."""
    while seconds > 0:
        if woken.wait(min(seconds, _TICK)):
            return True
        seconds -= _TICK
        if not threading.main_thread().is_alive():
            raise errors.Unavailable("The process is ending.")
    return False


def point(name: str) -> None:
    """Mark a named place in the engine where the plan of the current call may strike."""
    if not _installed:
        return
    plan = getattr(_in_hand, "plan", None)
    if plan is not None:
        plan.pass_point(name)


def batch_size(most: int) -> int:
    """Return the maximum size of a batch: `most`, or less if a rule strikes the current call."""
    if not _installed:
        return most
    cut: int | None = getattr(_in_hand, "batch", None)
    return most if cut is None else min(cut, most)


def has_batch_limit() -> bool:
    """Return whether a rule that limits batches strikes the current call."""
    return bool(_installed) and getattr(_in_hand, "batch", None) is not None
