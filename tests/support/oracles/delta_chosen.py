"""The scenarios that Delta's connector plays in a run: a fifth of those that are not kept, and random ones."""

import os

from tests.support.delta import feature_scenarios, random_scenarios, type_scenarios, write_scenarios

SEED = int(os.environ.get("SNAPSHOT_EXPLORER_SEED", "1"))
KNOWN = (*feature_scenarios.SCENARIOS, *write_scenarios.SCENARIOS, *type_scenarios.SCENARIOS)
ALWAYS = {"variants_shredded"}
"""Scenarios that are played each time."""
CHOSEN = [scenario for scenario in KNOWN if not scenario.kept and scenario.name not in ALWAYS][SEED % 5 :: 5]
SCENARIOS = (*CHOSEN, *[scenario for scenario in KNOWN if scenario.name in ALWAYS], *random_scenarios.scenarios(SEED))
NAMES = [scenario.name for scenario in SCENARIOS]
