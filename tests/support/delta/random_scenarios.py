"""Random scenarios of Delta tables: the same for the same seed."""

from __future__ import annotations

import random

from tests.support.delta.connector import Scenario
from tests.support.delta.feature_scenarios import create

_PROPERTIES = (
    "'delta.enableDeletionVectors' = 'true'",
    "'delta.enableChangeDataFeed' = 'true'",
    "'delta.enableRowTracking' = 'true'",
    "'delta.enableInCommitTimestamps' = 'true'",
    "'delta.columnMapping.mode' = 'name'",
    "'delta.columnMapping.mode' = 'id'",
    "'delta.checkpointPolicy' = 'v2'",
    "'delta.checkpoint.writeStatsAsStruct' = 'true'",
)
_COLUMNS = "id BIGINT, a INT, b STRING, part STRING"


def scenarios(seed: int, count: int = 2, steps: int = 5) -> tuple[Scenario, ...]:
    """Return so many random scenarios with so many steps each after a first append.

    In all of them together every kind of step is taken at least once.
    """
    choose = random.Random(seed)
    every = range(len(_WEIGHTS))
    more = choose.choices(every, _WEIGHTS, k=max(0, count * steps - len(every)))
    deck = choose.sample([*every, *more], count * steps)
    return tuple(
        _scenario(random.Random(seed * 1000 + number), f"random_{number}", deck[number::count])
        for number in range(count)
    )


def _scenario(choose: random.Random, name: str, kinds: list[int]) -> Scenario:
    chosen = choose.sample(_PROPERTIES[:4] + _PROPERTIES[6:], choose.randint(1, 3))
    chosen += choose.sample(_PROPERTIES[4:6], choose.randint(0, 1))
    properties = (*chosen, f"'delta.checkpointInterval' = '{choose.randint(2, 6)}'")
    more = choose.choice(("", "PARTITIONED BY (part)"))
    chosen_steps = [create(_COLUMNS, *properties, more=more), _append(choose, 0)]
    chosen_steps += [_steps(choose, number)[kind] for number, kind in enumerate(kinds, 1)]
    return Scenario(name=name, steps=tuple(chosen_steps))


def _append(choose: random.Random, number: int) -> str:
    rows, files = choose.randint(1, 15), choose.randint(1, 3)
    return (
        f"INSERT INTO {{t}} (id, a, b, part) SELECT id, CAST(id % {choose.randint(2, 9)} AS INT), "
        f"IF(id % 4 = 0, NULL, 'b' || id), array('x', 'y', NULL)[id % 3] "
        f"FROM range({number * 100}, {number * 100 + rows}, 1, {files})"
    )


def _condition(choose: random.Random) -> str:
    parts = (
        f"id % {choose.randint(2, 7)} = {choose.randint(0, 2)}",
        f"a = {choose.randint(0, 5)}",
        "b IS NULL",
        f"part = '{choose.choice('xy')}'",
        f"id > {choose.randint(0, 900)}",
    )
    return choose.choice((" AND ", " OR ")).join(choose.sample(parts, choose.randint(1, 2)))


_WEIGHTS = (5, 4, 4, 4, 2, 1, 2, 1, 1)
"""How often each of `_steps` is taken beside the first time."""


def _steps(choose: random.Random, number: int) -> tuple[str, ...]:
    """Return what may be done after so many steps, one statement of each kind."""
    merge = (
        f"MERGE INTO {{t}} t USING (SELECT id FROM range({choose.randint(0, 500)}, 800, {choose.randint(1, 90)}, 1)) s "
        f"ON t.id = s.id WHEN MATCHED AND t.a = {choose.randint(0, 4)} THEN DELETE "
        f"WHEN MATCHED THEN UPDATE SET b = 'm{number}' "
        f"WHEN NOT MATCHED THEN INSERT (id, a, b, part) VALUES (s.id, {number}, 'new', 'z')"
    )
    return (
        _append(choose, number),
        f"DELETE FROM {{t}} WHERE {_condition(choose)}",
        f"UPDATE {{t}} SET b = 'u{number}', a = a + 1 WHERE {_condition(choose)}",
        merge,
        "OPTIMIZE {t}",
        "REORG TABLE {t} APPLY (PURGE)",
        f"RESTORE TABLE {{t}} TO VERSION AS OF {choose.randint(0, max(1, number // 3))}",
        "VACUUM {t} RETAIN 168 HOURS",
        f"ALTER TABLE {{t}} ADD COLUMN extra_{number} INT",
    )
