"""How well a version is kept: numbers against plain Python, findings against thresholds, and how it is drawn."""

import shutil
from pathlib import Path

import pyarrow as pa
import pytest

from snapshot_explorer import open_table, samples
from snapshot_explorer.analysis.health import Health, read_health
from snapshot_explorer.core import frames
from snapshot_explorer.errors import SnapshotNotFoundError, UnsupportedFeatureError
from snapshot_explorer.formats import TableVersion
from tests.inner.analysis import groups_of, levels_frame, partitions_frame
from tests.inner.delta import settings_of as delta_upkeep
from tests.inner.paimon import PaimonSchema
from tests.inner.paimon import settings_of as paimon_upkeep
from tests.support.delta.table_builder import DeltaTable, add, remove
from tests.support.health_by_hand import by_group, group_by_hand, version_by_hand
from tests.support.paimon.table_builder import PaimonTable

DATA = Path(__file__).parents[1] / "data"
TABLES = sorted(
    folder
    for name in ("paimon", "delta", "iceberg")
    for folder in (DATA / name).iterdir()
    if folder.is_dir() and folder.name != "empty"
)
MB = 1024 * 1024
WHOLE = {"readable": "yes", "reason": None, "missing_files": 0}
DELTA = delta_upkeep({}, "s3://lake/orders")
KEYED = paimon_upkeep(
    PaimonSchema(id=0, fields=(), partition_keys=(), primary_keys=("id",), options={}, comment=None), "shop.orders"
)
MEASURED = frames.FILES.append(pa.field("delete_records", pa.int64()))


def health_of(files, settings=DELTA, manifests=(), readability=WHOLE):
    """Return the health of files, given as dicts of what matters of them; all of them exist."""
    plain = {"path": "f", "partition": [], "rows": 100, "size_bytes": MB, "schema_id": 0}
    groups = groups_of(pa.Table.from_pylist([plain | one for one in files], MEASURED))
    return Health(
        "orders",
        7,
        partitions=partitions_frame(groups, settings),
        levels=levels_frame(groups),
        manifests=pa.Table.from_pylist(list(manifests), frames.MANIFESTS),
        settings=settings,
        readability=readability,
    )


def finding(health, name):
    return next(one for one in health.findings.to_dict() if one["finding"] == name)


@pytest.mark.parametrize("folder", TABLES, ids=[f"{folder.parent.name}-{folder.name}" for folder in TABLES])
def test_numbers_are_those_of_the_files_counted_by_hand(folder):
    table = open_table(folder)
    health = table.health(metadata_only=True)
    files = table.current.files().to_arrow().to_pylist()

    found = {(tuple(row["partition"]), row["bucket"]): row for row in health.partitions.to_arrow().to_pylist()}

    expected = {key: group_by_hand(some, health.settings) for key, some in by_group(files).items()}
    assert {key: {name: found[key][name] for name in row} for key, row in expected.items()} == expected
    assert len(found) == len(expected) == health.partitions.num_rows
    assert sum(health.levels["files"].to_pylist()) in (0, len(files))
    assert str(health).startswith(f"Health of {table.name} at version {table.current.version}\n")


@pytest.mark.parametrize("name", samples.names())
def test_every_version_over_time_is_as_it_is_by_itself(name):
    table = open_table(samples.path(name))

    over = {row.pop("version"): row for row in table.health(between="..").to_dict()}

    assert tuple(over) == table.versions()[::-1]
    for version, row in over.items():
        health = table.health(version, metadata_only=True)
        expected = version_by_hand(table.at(version).files().to_arrow().to_pylist(), health.settings)
        if table.format == "iceberg":  # whose lifetimes are without deletions
            expected |= {"vector_files": None, "deleted_rows": None}
        assert {name: row[name] for name in expected} == expected
        totals = {key: sum(health.partitions[key].to_pylist()) for key in ("files", "small_files", "mergeable_files")}
        assert {key: row[key] for key in totals} == totals


@pytest.mark.parametrize("name", [folder.name for folder in TABLES if folder.parent.name == "paimon"])
def test_numbers_agree_with_paimons_own_system_tables(name):
    table = open_table(DATA / "paimon" / name)
    health = table.health(metadata_only=True)
    buckets = table.inspect("buckets").to_arrow()
    files = table.inspect("files").to_arrow()

    ours = health.partitions.to_arrow()

    keys = ("bucket", "files", "rows", "size_bytes")
    theirs = ("bucket", "file_count", "record_count", "file_size_in_bytes")
    assert sorted(zip(*(ours[key].to_pylist() for key in keys), strict=True)) == sorted(
        zip(*(buckets[key].to_pylist() for key in theirs), strict=True)
    )
    levels = files["level"].to_pylist()
    assert health.levels.to_arrow().select(["level", "files"]).to_pylist() == [
        {"level": level, "files": levels.count(level)} for level in sorted(set(levels))
    ]
    assert sum(ours["size_bytes"].to_pylist()) == sum(files["file_size_in_bytes"].to_pylist())


def test_no_data_file_is_read(counted, memory_root):
    table = PaimonTable(*memory_root)
    for _ in range(3):
        table.commit()
    opened = open_table(f"counted://{table.root}")

    str(opened.health(metadata_only=True)), str(opened.health(between=".."))

    assert [one.path for one in counted.requests if one.path.endswith(".parquet")] == []


def test_a_small_table_of_small_files_is_in_order():
    health = health_of([{"size_bytes": 1_000, "deletion_vector": "u:1", "deleted_rows": 90}] * 20)

    assert health.verdict == "In good order: nothing to do."
    assert finding(health, "small files")["value"] == 19
    assert finding(health, "rows deleted by vectors") | {"state": "ok", "value": 0.9} == finding(
        health, "rows deleted by vectors"
    )
    assert "which does not matter in a table of this size" in " ".join(str(health).split())


def test_a_partition_as_large_as_the_limit_is_not_small():
    size = DELTA.small_bytes
    exact = [{"partition": [("day", str(day))], "size_bytes": size} for day in range(90)]
    smaller = [{**one, "size_bytes": size - 1} for one in exact]

    assert finding(health_of(exact), "small partitions")["value"] == 0
    assert finding(health_of(smaller), "small partitions")["value"] == 90


def test_small_files_that_are_alone_in_their_partitions_cannot_be_merged():
    health = health_of([{"partition": [("day", str(day))]} for day in range(90)])

    assert finding(health, "small files")["value"] == 0
    assert finding(health, "small files")["state"] == "ok"
    assert finding(health, "small partitions")["state"] == "ok"


def test_small_files_are_to_be_watched_where_merging_spares_fifty_and_a_fifth_of_all():
    few = [{"size_bytes": MB}] * 51
    large = [{"size_bytes": 200 * MB}] * 300

    assert finding(health_of(few[1:]), "small files")["state"] == "ok"
    assert finding(health_of(few), "small files")["state"] == "watch"
    assert finding(health_of(few + large), "small files")["state"] == "ok"
    assert health_of(few).verdict == "Nothing is urgent. To watch: small files."


def test_many_small_files_are_to_be_merged_by_the_engines_command():
    health = health_of([{"size_bytes": MB}] * 1_300)

    assert (
        health.verdict
        == "To do: small files (compaction would remove 1,289 of 1,300 files, by merging 1,300 small ones)."
    )
    assert "act: small files" in str(health)
    assert "Run OPTIMIZE delta.`s3://lake/orders`" in " ".join(str(health).split())


def test_what_merged_files_would_fill_anyway_is_not_spared():
    health = health_of([{"size_bytes": 60 * MB}] * 4)

    assert finding(health, "small files")["value"] == 4 - 2


def test_sorted_runs_are_measured_against_the_triggers_of_the_table():
    fresh = [{"bucket": 0, "level": 0}]
    runs = [{"bucket": 0, "level": 3}, {"bucket": 0, "level": 3}, {"bucket": 0, "level": 5}, {"bucket": 1, "level": 0}]

    states = [finding(health_of([*runs, *fresh * more], KEYED), "sorted runs") for more in (3, 4, 6, 7)]

    assert [(one["value"], one["state"]) for one in states] == [(5, "ok"), (6, "watch"), (8, "watch"), (9, "act")]
    assert "1 of 2 buckets are above the trigger" in states[1]["found"]


def test_postponed_files_are_no_sorted_runs_and_wait_for_a_compaction():
    health = health_of([{"bucket": -2, "level": 0}] * 3 + [{"bucket": 0, "level": 5}], KEYED)

    assert sorted(health.partitions["sorted_runs"].to_pylist()) == [0, 1]
    assert finding(health, "postponed files")["state"] == "watch"
    assert "CALL sys.compact(table => 'shop.orders', compact_strategy => 'full')" in " ".join(str(health).split())


def test_deleted_rows_are_measured_against_what_the_engine_rewrites_from():
    vector = {"size_bytes": 200 * MB, "deletion_vector": "u:1"}

    states = [
        finding(health_of([vector | {"deleted_rows": deleted}]), "rows deleted by vectors")
        for deleted in (4, 5, 50, None)
    ]

    assert [(one["value"], one["state"]) for one in states] == [
        (0.04, "ok"),
        (0.05, "watch"),
        (0.5, "act"),
        (None, "unknown"),
    ]


def test_rows_that_delete_others_are_counted_where_the_manifests_record_them():
    large = {"size_bytes": 200 * MB, "bucket": 0, "level": 5}

    known = finding(health_of([large | {"delete_records": 30}], KEYED), "rows that delete others")
    unknown = finding(health_of([large, large | {"delete_records": 30}], KEYED), "rows that delete others")

    assert (known["value"], known["state"]) == (0.3, "watch")
    assert (unknown["value"], unknown["state"], unknown["found"]) == (None, "unknown", "unknown: not in the manifests")


def test_skew_counts_where_the_largest_partition_is_large():
    def skewed(size):
        days = [{"partition": [("day", str(day))], "size_bytes": size} for day in range(5)]
        return health_of([*days, *[{"partition": [("day", "x")], "size_bytes": size}] * 12])

    small, large = (finding(skewed(size), "skew") for size in (MB, 200 * MB))

    assert (small["value"], small["state"]) == (12.0, "ok")
    assert (large["value"], large["state"]) == (12.0, "watch")


def test_many_small_partitions_are_reported():
    health = health_of([{"partition": [("user", str(user))]} for user in range(200)])

    assert finding(health, "small partitions")["state"] == "watch"
    assert "coarser partitions" in finding(health, "small partitions")["advice"]


def manifests(count, name="base", size=1_000):
    return [{"list": name, "path": f"m{number}", "size_bytes": size} for number in range(count)]


def test_small_manifests_are_counted_against_what_writers_merge():
    large = manifests(100, size=9 * MB)

    states = [finding(health_of([], KEYED, [*large, *manifests(count)]), "manifests") for count in (59, 60, 300)]

    assert [(one["value"], one["state"]) for one in states] == [(59, "ok"), (60, "watch"), (300, "act")]
    assert states[0]["advice"] == "CALL sys.compact_manifest(table => 'shop.orders')"


def test_commits_since_the_checkpoint_are_counted():
    states = [
        finding(
            health_of([], DELTA, [*manifests(2, "base"), *manifests(count, "delta")]), "commits since the checkpoint"
        )
        for count in (99, 100, 1_000)
    ]

    assert [(one["value"], one["state"]) for one in states] == [(99, "ok"), (100, "watch"), (1000, "act")]
    assert states[0]["found"].startswith("99, and the checkpoint of 2.0 kB in 2 files: 101 files to read at opening")


def test_a_checkpoint_that_cannot_be_read_is_not_said_to_be_absent(tmp_path):
    shutil.copytree(DATA / "delta" / "checkpoint_v2_json", tmp_path / "t")
    for sidecar in (tmp_path / "t" / "_delta_log" / "_sidecars").iterdir():
        sidecar.write_bytes(b"")

    health = open_table(tmp_path / "t").health(metadata_only=True)

    assert (
        "9, and no checkpoint that can be read: 9 files to read at opening"
        in health.findings.to_arrow()["found"].to_pylist()
    )


def test_a_version_without_files_has_nothing_to_be_done(memory_root):
    table = DeltaTable(*memory_root)
    table.commit(add("a", rows=1))
    table.commit(remove("a"))
    opened = open_table(table.url)

    health = opened.health(metadata_only=True)

    assert health.verdict == "The version has no data files: nothing to do."
    assert health.partitions.num_rows == health.levels.num_rows == 0
    assert "average file size     -" in str(health)
    assert opened.health(between="..")["median_bytes"].to_pylist() == [None, 500, None]


def test_a_table_without_versions_has_no_health(memory_root):
    opened = open_table(f"memory:/{PaimonTable(*memory_root).root}")

    with pytest.raises(SnapshotNotFoundError, match="no version"):
        opened.health(metadata_only=True)
    assert opened.health(between="..").num_rows == 0


def test_the_drawing_is_bounded_and_shows_the_worst_first(memory_root):
    files = [{"partition": [("user", str(user))], "path": str(user)} for user in range(100_000)]

    health = health_of([*files, {"partition": [("user", "77777")]}, {"partition": [("user", "77777")]}])

    drawn = str(health)
    assert "10 of 100,000 partitions" in drawn
    assert len(drawn.splitlines()) < 60
    assert health.partitions["partition"][0].as_py() == [("user", "77777")]
    assert health.partitions.num_rows == 100_000


def test_odd_names_and_the_null_partition_are_drawn_as_what_they_are():
    odd = "<script>alert(1)</script>\x1b[31m"

    health = health_of([{"partition": [("day", odd)]}, {"partition": [("day", None)]}, {"partition": [("day", "-")]}])

    drawn = health._repr_mimebundle_()
    assert "<script>" not in drawn["text/html"]
    assert "\x1b" not in drawn["text/plain"] + drawn["text/html"]
    assert "day=-" in drawn["text/plain"]
    assert health.partitions.num_rows == 3


def test_a_health_is_data():
    health = health_of([{"size_bytes": MB}] * 60)

    reported = health.to_dict()

    assert reported["version"] == 7
    assert reported["verdict"] == health.verdict
    assert [one["state"] for one in reported["findings"]] == ["watch", "ok", "ok", "ok", "ok", "ok"]
    assert reported["partitions"][0]["files"] == 60
    assert health.findings.to_arrow().schema.equals(frames.HEALTH_FINDINGS)
    assert health.partitions.to_pandas()["share"].to_list() == [1.0]


def test_notes_stand_where_something_is_to_be_done():
    schema = PaimonSchema(
        id=0, fields=(), partition_keys=(), primary_keys=(), options={"write-only": "true"}, comment=None
    )
    settings = paimon_upkeep(schema, "shop.orders")

    assert "write-only=true: its writers never compact" in str(health_of([{"bucket": 0, "level": 0}] * 60, settings))
    assert "write-only" not in str(health_of([{"bucket": 0, "level": 0}], settings))


def test_a_format_that_tells_nothing_of_upkeep_is_refused_by_name():
    class Plain(TableVersion):
        pass

    Plain.__abstractmethods__ = frozenset()

    with pytest.raises(UnsupportedFeatureError, match="which has no settings for maintenance"):
        read_health(Plain(None, 1), name="t")


@pytest.mark.parametrize("schema", [frames.HEALTH_FINDINGS, frames.HEALTH_PARTITIONS, frames.HEALTH_LEVELS])
def test_every_column_says_what_it_means(schema):
    assert [field.name for field in schema if not (field.metadata or {}).get(b"meaning")] == []


UNCHECKED = "Not checked: whether its files exist; table.verify() looks for them."


@pytest.mark.parametrize(
    ("readability", "state", "verdict"),
    [
        (None, "unknown", f"By its metadata, there is nothing to do. {UNCHECKED}"),
        (WHOLE, "ok", "In good order: nothing to do."),
        (
            {"readable": "metadata", "reason": "1 of 2 files are not there", "missing_files": 1},
            "act",
            "To do: missing files (the version cannot be loaded: 1 of 2 files are not there).",
        ),
        (
            {"readable": None, "reason": "1 of 2 files are on another storage", "missing_files": None},
            "unknown",
            f"By its metadata, there is nothing to do. {UNCHECKED}",
        ),
    ],
)
def test_health_says_whether_the_files_were_looked_for(readability, state, verdict):
    health = health_of([{"size_bytes": 128 * MB}], readability=readability)

    assert health.verdict == verdict
    assert finding(health, "missing files")["state"] == state


def test_health_includes_what_readability_found(tmp_path):
    table = DeltaTable(None, tmp_path / "t")
    table.append([(1, "a")], name="a.parquet")
    opened = open_table(table.url)
    assert opened.health(metadata_only=True).verdict.endswith(UNCHECKED)

    table.remove_file("a.parquet")
    opened.verify()

    assert opened.health(metadata_only=True).verdict.startswith(
        "To do: missing files (the version cannot be loaded: 1 of 1 files"
    )
    assert UNCHECKED not in opened.health(metadata_only=True).verdict
