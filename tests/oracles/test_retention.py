"""What `retention` says before the engines expire and vacuum, against what they then take."""

import json
import os
from datetime import UTC, datetime, timedelta

from snapshot_explorer import open_table
from snapshot_explorer.analysis.retention import retention_of
from snapshot_explorer.history import history_of
from tests.oracles import delta_log_cleanup
from tests.support.delta.expired_logs import LOGS, deleted
from tests.support.oracles import delta_chosen

SEED = os.environ.get("SNAPSHOT_EXPLORER_SEED", "2")
METADATA = ("snapshot", "manifest", "schema", "tag", "branch", "consumer", "index", "statistics", "changelog")


def predicted(table, *, now, keep, keep_last=None):
    return retention_of(
        history_of(table).table_format, table.lifetimes(), keep=keep, keep_last=keep_last, name="t", now=now
    )


def files_of(folder, *, but=()):
    """The files below a folder by path, with their sizes, but for hidden ones of the file system's."""
    found = (path for path in folder.rglob("*") if path.is_file() and not path.name.startswith("."))
    sizes = {path.relative_to(folder).as_posix(): path.stat().st_size for path in found}
    return {path: size for path, size in sizes.items() if path.partition("/")[0] not in but}


def freed(rows):
    return dict(zip(rows["path"].to_pylist(), rows["size_bytes"].to_pylist(), strict=True))


def lost(result):
    return set(result.unloadable["version"].to_pylist())


def states(table):
    listing = history_of(table).table_format.listing(0)
    return set(listing.reachable) - set(listing.without_files)


def expiries(folder):
    return sorted(folder.glob("*/[0-9]"))


def test_expiry_takes_what_was_predicted_from_every_table(oracle):
    folder = oracle("paimon_expire.py", "1.4", SEED)
    rounds = [round_ for round_ in expiries(folder) if (round_ / "asked.json").exists()]

    taken = [assert_expiry(round_) for round_ in rounds]

    assert len(rounds) >= 10
    assert sum(files > 0 for files in taken) >= 5


def assert_expiry(folder):
    """Compare an expiry with what is predicted from the table before it; return how many files went."""
    asked = json.loads((folder / "asked.json").read_text())
    before, after = (open_table(folder / when, branch=asked["branch"]) for when in ("before", "after"))
    older_than = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=asked["older_than"])

    result = predicted(before, now=older_than, keep=timedelta(0), keep_last=asked["retain_min"])

    gone = gone_between(folder, "before", "after")
    assert lost(result) == states(before) - states(after), folder
    assert freed(result.freed) == gone, folder
    assert result.freed_bytes == sum(gone.values())
    untagged = gone_between(folder, "after", "untagged")
    holders = {row["name"]: row for row in result.holders.to_dict() if row["holder"] == "tag"}
    alone = holders.get(asked["tag"], {"exclusive_files": 0, "exclusive_bytes": 0})
    assert (alone["exclusive_files"], alone["exclusive_bytes"]) == (len(untagged), sum(untagged.values())), folder
    return len(gone)


def gone_between(folder, before, after):
    """The data files that went, with their sizes; the file indexes beside them are not counted."""
    there, left = (files_of(folder / when, but=METADATA) for when in (before, after))
    return {path: size for path, size in there.items() if path not in left and not path.endswith(".index")}


def test_vacuum_takes_what_was_predicted_from_every_table(connector_wrote):
    folders = sorted(path.parent for path in connector_wrote("delta").glob("vacuumed/*/asked.json"))

    taken = [assert_vacuum(folder) for folder in folders]

    assert len(folders) == 2
    assert all(files > 0 for files in taken)


def assert_vacuum(folder):
    """Compare a VACUUM with what is predicted from the table before it; return how many files went."""
    asked = json.loads((folder / "asked.json").read_text())
    before, after = (open_table(folder / when) for when in ("before", "after"))
    now = datetime.fromtimestamp(asked["now"], UTC)

    result = predicted(before, now=now, keep=timedelta(0) if asked["kept"] == "none" else None)

    there, left = (files_of(folder / when, but=("_delta_log",)) for when in ("before", "after"))
    gone = {path: size for path, size in there.items() if path not in left}
    assert freed(result.freed) == gone, folder
    assert lost(result) == set(asked["before"]) - set(asked["after"]), folder
    rows = {row["version"]: row["readable"] for row in after.verify().versions.to_dict()}
    assert {version for version in asked["before"] if rows[version] == "yes"} == set(asked["after"])
    assert result.holders["size_bytes"].to_pylist() == [held(before, left)]
    return len(gone)


def held(table, left):
    """The bytes of data files that are there, and not the newest version's."""
    newest = set(table.current.files()["path"].to_pylist())
    known = set(table.lifetimes().to_arrow()["path"].to_pylist())
    return sum(size for path, size in left.items() if path in known - newest)


def test_the_clean_up_of_a_log_takes_what_was_predicted(connector_wrote):
    folders = sorted(path.parent for path in connector_wrote("delta").glob("logs/*/asked.json"))

    assert len(folders) == len(delta_log_cleanup.chosen(delta_chosen.SEED))
    assert sum(assert_log_clean_up(folder) > 0 for folder in folders) > 2


def assert_log_clean_up(folder):
    """Compare the clean-up of a log with what is predicted, and with what is written down of it."""
    asked = json.loads((folder / "asked.json").read_text())
    before = open_table(folder / "before")
    result = predicted(before, now=datetime.fromtimestamp(asked["now"], UTC), keep=None)

    there, left = (files_of(folder / when) for when in ("before", "after"))
    gone = {path for path in there if path not in left and "_sidecars" not in path}
    assert set(result.metadata_files["path"].to_pylist()) == gone, asked["name"]
    assert deleted(LOGS[asked["name"]], folder / "before") == gone, asked["name"]
    return len(gone)
