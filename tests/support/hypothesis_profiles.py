"""The profiles of Hypothesis: `ci` for the gate, `dev` for quick runs, `deep` for long ones."""

import os

from hypothesis import HealthCheck, settings


def load() -> None:
    """Register the profiles, and load the one that HYPOTHESIS_PROFILE names, or `ci`."""
    settings.register_profile(
        "ci",
        deadline=None,
        derandomize=True,
        max_examples=50,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
    )
    ci = settings.get_profile("ci")
    settings.register_profile("dev", ci, derandomize=False, max_examples=10)
    settings.register_profile("deep", ci, derandomize=False, max_examples=5_000)
    settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))
