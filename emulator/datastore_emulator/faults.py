"""Fault plans for `Engine.install_faults`, and the names of the points at which they can strike."""

from datastore_emulator.fault_injection.fault_plans import Plan
from datastore_emulator.fault_injection.fault_rules import POINTS

__all__ = ["POINTS", "Plan"]
