"""Have Paimon's Java core write tables with tags, consumers and a branch, and expire snapshots, as its procedure does.

    python -m tests.oracles.paimon_expire OUT RELEASE SEED [NAME...]

Writes of each round of expiry `OUT/NAME/ROUND/before`, `after` and, when a tag was deleted then, `untagged`, copies of
the table, and `asked.json`: the arguments, the tag, and what Paimon answered.
"""

from __future__ import annotations

import json
import shutil
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.support.oracles import paimon_core
from tests.support.oracles.paimon_histories import TABLES
from tests.support.oracles.paimon_scenario import Scenario
from tests.support.oracles.paimon_values import Dice

NAMES = ("keyed_0", "keyed_1", "keyed_3", "keyed_5", "aggregation_0", "append_1", "vectors", "rescaled")
ROUNDS = 2
BRANCHED = 2
"""The round in which the branch expires."""


def main() -> None:
    """Write the tables, and let their snapshots expire."""
    out, release, seed, *names = sys.argv[1:]
    core = paimon_core.Core(Path(sys.prefix) / "jars" / f"paimon-{release}", Path(out))
    for name in names or NAMES:
        scenario = Scenario(core, name, Dice(f"{seed} {release} {name} expiry"), release)
        scenario.attempt("the whole history", lambda name=name, scenario=scenario: TABLES[name].fill(scenario))
        live(core, name, scenario, Path(out))


def live(core: Any, name: str, scenario: Scenario, out: Path) -> None:
    """Let a table's snapshots expire some times, with other holders and other rules each time."""
    dice = scenario.dice
    for number in range(ROUNDS):
        table = core.table(name)
        manager = table.snapshotManager()
        versions = list(range(int(manager.earliestSnapshotId()), int(manager.latestSnapshotId()) + 1))
        hold(core, table, dice, number, versions)
        # A branch that expires takes the changelog of the version that it began with from the main branch too.
        produces = scenario.options.get("changelog-producer", "none") != "none"
        branch = "late" if number == BRANCHED and not produces else None
        if branch:
            fork(core, scenario, branch)
        expire(core, name, dice, branch, out / name / str(number))
        for step in (scenario.commit, scenario.compact, scenario.commit, scenario.compact):
            step()


def hold(core: Any, table: Any, dice: Dice, number: int, versions: list[int]) -> None:
    """Tag some versions, branch from one, and let a consumer wait."""
    for place, version in enumerate(sorted(dice.sample(versions, min(2, len(versions))))):
        table.createTag(f"round{number}_{place}", version)
    if number == 0:
        table.createBranch("dev", "round0_0")
        consume(core, table.switchToBranch("dev"), "far", 10_000)
    if number == ROUNDS - 1 and "round0_0" in map(str, table.tagManager().allTagNames()):
        # The branch is left alone with what it shares.
        table.deleteTag("round0_0")
    if dice.random() < 0.5:
        consume(core, table, "waiting", dice.choice(versions))
    else:
        manager(core, table).deleteConsumer("waiting")


def fork(core: Any, scenario: Scenario, name: str) -> None:
    """Branch from the newest version, and write files into the branch that later ones take away."""
    scenario.commit()
    table = core.table(scenario.name)
    table.createTag("fork", table.snapshotManager().latestSnapshotId())
    table.createBranch(name, "fork")
    whole = core.table(scenario.name, dynamic_partition_overwrite="false").switchToBranch(name)
    for _ in range(2):
        scenario.commit(table=whole)
        core.change(scenario.name, [], overwrite={}, table=whole)
    scenario.commit(table=whole)


def manager(core: Any, table: Any) -> Any:
    """Return Paimon's own manager of consumers."""
    return core.paimon.consumer.ConsumerManager(table.fileIO(), table.location(), table.snapshotManager().branch())


def consume(core: Any, table: Any, name: str, version: int) -> None:
    """Let a consumer wait for a version."""
    manager(core, table).resetConsumer(name, core.paimon.consumer.Consumer(version))


def expire(core: Any, name: str, dice: Dice, branch: str | None, out: Path) -> None:
    """Let snapshots expire by random arguments, between two copies of the table."""
    table = core.table(name)
    table = table.switchToBranch(branch) if branch else table
    snapshots = table.snapshotManager()
    earliest, latest = int(snapshots.earliestSnapshotId()), int(snapshots.latestSnapshotId())
    times = sorted(int(snapshots.snapshot(version).timeMillis()) for version in range(earliest, latest + 1))
    # The procedure tells the age from its own clock: a millisecond or two later.
    apart = [
        time for time, following in zip(times, [*times[1:], times[-1] + 1_000], strict=True) if following - time > 40
    ]
    older_than = dice.choice(apart) + dice.choice((10, 10, 100_000_000))
    text = datetime.fromtimestamp(older_than / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]
    retain_min = dice.choice((1, 1, 2, 3, 7))
    folder = core.warehouse / "d.db" / name
    shutil.copytree(folder, out / "before")
    options = core.paimon.utils.ProcedureUtils.fillInSnapshotOptions(
        table.coreOptions(),
        None,
        core.gateway.jvm.java.lang.Integer(retain_min),
        text,
        core.gateway.jvm.java.lang.Integer(latest),
    )
    answer = table.newExpireSnapshots().config(options.build()).expire()
    shutil.copytree(folder, out / "after")
    # Deleting a tag takes what branches share with this one too: those that they began with stay.
    tags = sorted(set(map(str, table.tagManager().allTagNames())) - {"round0_0", "fork"})
    tag = dice.choice(tags) if tags else None
    if tag:
        table.deleteTag(tag)
    shutil.copytree(folder, out / "untagged")
    asked = {"older_than": older_than, "retain_min": retain_min, "branch": branch, "expired": int(answer), "tag": tag}
    (out / "asked.json").write_text(json.dumps(asked))


if __name__ == "__main__":
    main()
