"""One-line fault plans."""

from typing import Any

from datastore_emulator.fault_injection import fault_plans


def plan(*rules: dict[str, Any], seed: int = 0) -> fault_plans.Plan:
    return fault_plans.Plan.parse({"seed": seed, "rules": list(rules)})
