"""Who holds which bytes: judged by the sets of files of each version, read one by one."""

import os
import shutil
from pathlib import Path
from random import Random

import pytest

from snapshot_explorer import open_table, samples
from snapshot_explorer.errors import InvalidArgumentError, SnapshotNotFoundError, UnsupportedFeatureError
from snapshot_explorer.history import history_of
from tests.inner.engines import parse_condition
from tests.support.delta.table_builder import DeltaTable, metadata, protocol, remove
from tests.support.iceberg.table_builder import IcebergTable
from tests.support.paimon.table_builder import PaimonTable
from tests.support.scenarios import SCENARIOS, played

TABLES = Path(__file__).parents[1] / "data"
GOLDEN = (
    "paimon/dv",
    "paimon/expired",
    "paimon/changelog_full",
    "paimon/fallback_branch",
    "paimon/many_levels",
    "iceberg/branches_tags",
    "iceberg/v2_mor_partitioned",
    "iceberg/v3_dv",
    "delta/dv_partitioned",
    "delta/cleaned_log",
    "delta/vacuumed",
    "hudi/v9_mor_basic",
    "hudi/v9_cow_savepoint_restored",
    "hudi/v8_cow_cleaned_versions",
)


class Sets:
    """The files of each holder as sets, and the size of each file."""

    def __init__(self, table):
        history = history_of(table)
        own, listing = history.table_format, history.listing
        self.sizes = {}
        self.versions = {version: self.files(own, version) for version in states(listing)}
        first = listing.first_unexpired
        self.plain = [version for version in self.versions if first is None or version >= first]
        self.newest = self.plain[-1]
        self.live = self.versions[self.newest]
        self.holders = {("version", version): self.versions[version] for version in self.plain}
        names = [
            name for name in (*own.branches.names(), *own.branches.detached_heads()) if name != history.branch_name
        ]
        others = {name: own.branches.table_on(name) for name in names}
        for name, version in own.tags().items():
            source = (
                next(other for other in (own, *others.values()) if other.tags()[name] in states(other.listing(0)))
                if version not in self.versions
                else own
            )
            self.holders["tag", name] = self.files(source, source.tags()[name])
        for name, other in others.items():
            held = [self.files(other, version) for version in states(other.listing(0))]
            self.holders["branch", name] = frozenset().union(*held)

    def files(self, table_format, version):
        rows = table_format.version(version).files().select(["path", "size_bytes"]).to_pylist()
        self.sizes |= {row["path"]: row["size_bytes"] for row in rows}
        return frozenset(row["path"] for row in rows)

    def freed(self, *chosen):
        rest = [held for holder, held in self.holders.items() if holder not in chosen]
        return frozenset().union(*(self.holders[holder] for holder in chosen)).difference(*rest)

    @property
    def all(self):
        return frozenset().union(*self.holders.values())

    def size(self, paths):
        return len(paths), sum(self.sizes[path] for path in paths)

    def counts(self, paths):
        return self.size(paths) + self.size(paths & self.live) + self.size(paths - self.live)


def states(listing):
    return sorted(set(listing.reachable) - set(listing.without_files))


def counts(row):
    return tuple(row[f"{prefix}{name}"] for prefix, name in COUNTED)


COUNTED = (
    ("", "files"),
    ("", "size_bytes"),
    ("live_", "files"),
    ("live_", "bytes"),
    ("held_", "files"),
    ("held_", "bytes"),
)


def exclusive(row):
    return row["exclusive_files"], row["exclusive_bytes"]


def check(table):
    """Compare all groups of a table's usage with sets of files."""
    sets = Sets(table)
    usage = table.usage()
    summary = {row["group"]: counts(row)[:2] for row in usage.summary.to_dict()}
    assert usage.version == sets.newest
    assert summary["newest version"] == sets.size(sets.live)
    assert tuple(map(sum, zip(*summary.values(), strict=True))) == sets.size(sets.all)
    older = [("version", version) for version in sets.plain[:-1]]
    not_only_older = frozenset().union(*(held for holder, held in sets.holders.items() if holder not in older))
    assert summary["only older versions"] == sets.size(sets.all - not_only_older)
    rows = {row["group"]: row for row in usage.groups.to_dict()}
    assert exclusive(rows["older versions"]) == sets.size(sets.freed(*older))
    for kind, name in sets.holders:
        if kind != "version":
            label = f"{kind} {name}"
            row = rows.pop(label, None) or rows.pop(f"versions on no branch up to snapshot {name}")
            assert counts(row) == sets.counts(sets.holders[kind, name]), label
            assert exclusive(row) == sets.size(sets.freed((kind, name))), label
            assert (row["committed_at"] is None) == (kind != "tag"), label
    assert set(rows) == {"newest version", "older versions"}
    by_version = {row["version"]: row for row in table.usage("version").groups.to_dict()}
    assert list(by_version) == list(sets.versions)[::-1]
    for version, held in sets.versions.items():
        assert counts(by_version[version]) == sets.counts(held), version
        is_removable = version in sets.plain[:-1]
        expected = sets.size(sets.freed(("version", version))) if is_removable else (None, None)
        assert exclusive(by_version[version]) == expected, version
    for by in ("commit", "operation", "user", "day", "size"):
        groups = table.usage(by).groups.to_dict()
        assert tuple(map(sum, zip(*map(counts, groups), strict=True))) == sets.counts(sets.all), by
    seen = frozenset()
    over_time = table.usage("time").groups.to_dict()[::-1]
    for row, (version, held) in zip(over_time, sets.versions.items(), strict=True):
        seen |= held
        expected = sets.size(seen) + sets.size(held) + sets.size(seen - held)
        assert (row["version"], counts(row)) == (version, expected)
    return sets


@pytest.fixture(params=SCENARIOS, ids=lambda scenario: scenario.format)
def scenario(request, memory_root):
    return played(request.param(*memory_root))


def test_usage_is_what_the_sets_of_files_say(scenario):
    sets = check(open_table(scenario.url))

    assert len(sets.all) == 5


@pytest.mark.parametrize("path", GOLDEN)
def test_usage_of_tables_of_the_engines_is_what_the_sets_of_files_say(path):
    check(open_table(TABLES / path))


def test_usage_of_a_branch_counts_main_as_another(memory_root):
    table = open_table(samples.path("orders"), branch="dev")

    assert "branch main" in table.usage().groups["group"].to_pylist()
    check(table)


def paimon(memory_root, random):
    table = PaimonTable(*memory_root)
    for number in range(1, 4):
        table.commit([(number, "a" * random.randrange(9))])
    dev = table.fork("dev", random.randrange(1, 4))
    for writer in random.choices([table, dev], k=7):
        gone = random.sample(sorted(writer.live), min(len(writer.live), random.randrange(3)))
        writer.commit([(1, "b" * random.randrange(50))], removed=gone, kind="OVERWRITE")
    for name in range(random.randrange(4)):
        table.tag(f"v{name}", random.randrange(1, table.snapshots + 1))
    table.expire(random.randrange(1, table.snapshots + 1))
    return f"memory://{table.root}"


def iceberg(memory_root, random):
    table = IcebergTable(*memory_root)
    ids, live = [table.commit([(1, "a")])], {"main": ["data-1.parquet"], "dev": ["data-1.parquet"]}
    table.metadata["refs"]["dev"] = {"snapshot-id": ids[0], "type": "branch"}
    for _ in range(9):
        branch = random.choice(["main", "dev"])
        gone = random.sample(live[branch], min(len(live[branch]), random.randrange(3)))
        ids.append(table.commit([(1, "b" * random.randrange(50))], removed=gone, operation="overwrite", branch=branch))
        live[branch] = [name for name in live[branch] if name not in gone] + [f"data-{table.commits}.parquet"]
    for name in range(random.randrange(4)):
        table.tag(f"v{name}", random.choice(ids))
    if random.random() < 0.5:
        table.rollback(ids[0], 1_800_000_000_000)
    if random.random() < 0.5:
        del table.metadata["refs"]["dev"]
        table.write_metadata()
    return f"memory://{table.root}"


def delta(memory_root, random):
    table = DeltaTable(*memory_root, first=None)
    live = []
    for number in range(9):
        gone = random.sample(live, min(len(live), random.randrange(3)))
        live = [name for name in live if name not in gone] + [f"data-{number}.parquet"]
        first = (protocol(), metadata()) if not number else ()
        added = table.data(f"data-{number}.parquet", [(number, "b" * random.randrange(50))])
        table.commit(*first, added, *map(remove, gone))
    return f"memory://{table.root}"


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("made", [paimon, iceberg, delta], ids=lambda made: made.__name__)
def test_usage_of_random_histories_is_what_the_sets_of_files_say(made, seed, memory_root):
    random = Random(f"{made.__name__} {seed}")
    table = open_table(made(memory_root, random))

    sets = check(table)

    for _ in range(4):
        removable = [holder for holder in sets.holders if holder != ("version", sets.newest)]
        chosen = random.sample(removable, random.randrange(1, len(removable) + 1)) if removable else []
        chosen = [holder for holder in chosen if holder[0] != "branch" or holder[1].isalpha()]
        refs = [name if kind == "version" else f"{kind}:{name}" for kind, name in chosen]
        removal = table.usage(without=refs).removal
        assert (removal.freed_files, removal.freed_bytes) == sets.size(sets.freed(*chosen)), refs
        assert frozenset(removal.freed["path"].to_pylist()) == sets.freed(*chosen), refs


def test_compaction_is_write_amplification(scenario):
    table = open_table(scenario.url)

    *older, newest = table.usage("time").groups.to_dict()[::-1]

    added = [row["added_bytes"] for row in (*older, newest)]
    assert None not in added
    assert newest["kind"] == "compact"
    assert (newest["rewritten_bytes"], {row["rewritten_bytes"] for row in older}) == (added[-1], {0})
    assert {row["write_amplification"] for row in older} == {1}
    assert newest["write_amplification"] == pytest.approx(sum(added) / sum(added[:-1]))


def test_a_compaction_gains_what_it_removes(scenario):
    table = open_table(scenario.url)

    newest = table.usage("time").groups.to_dict()[0]

    removed = table.history().to_dict()[0]["removed_bytes"]
    assert newest["removed_bytes"] == removed > 0


@pytest.mark.parametrize(
    ("name", "where", "is_exact"),
    [
        ("payments", ["payment_id = 17", "day >= '2026-11-05'"], True),
        ("payments", "payment_id > 100", True),
        ("shipments", ["shipment_id between 10 and 30"], True),
        ("rides", ["fare < 0"], False),
        ("orders", ["order_id = 42", "amount < 0"], False),
    ],
)
def test_what_conditions_would_have_read_is_what_plans_of_each_version_read(name, where, is_exact):
    """A plan also skips by rules of the format, such as buckets and log files, so it may read less."""
    table = open_table(samples.path(name))

    rows = table.usage("time", where=where).groups.to_dict()

    assert len(rows) > 5
    fewer = 0
    for row in rows:
        files = table.at(row["version"]).files().to_arrow()
        sizes = dict(zip(files["path"].to_pylist(), files["size_bytes"].to_pylist(), strict=True))
        plans = [planned(table, row["version"], text) for text in ([where] if isinstance(where, str) else where)]
        number, size = sum(map(len, plans)), sum(sizes[path] for plan in plans for path in plan)
        if is_exact:
            assert (row["read_files"], row["read_bytes"]) == (number, size), row
        assert number <= row["read_files"] <= len(plans) * row["live_files"]
        assert size <= row["read_bytes"] <= len(plans) * row["live_bytes"]
        fewer += row["read_files"] < len(plans) * row["live_files"]
    assert fewer or not is_exact


def planned(table, version, where):
    """Return the paths of the files that a scan of a version reads."""
    schema = table.current.arrow_schema
    plan = history_of(table).format.version(version).plan(parse_condition(where, schema))
    return {path for split in plan.splits for path in split.files}


def test_conditions_are_counted_by_time_alone(scenario):
    table = open_table(scenario.url)

    with pytest.raises(InvalidArgumentError, match="where is counted at each version: use by='time'"):
        table.usage("version", where="id = 1")
    with pytest.raises(InvalidArgumentError, match="nowhere"):
        table.usage("time", where="nowhere = 1")
    with pytest.raises(InvalidArgumentError, match="A condition is SQL text, got 5"):
        table.usage("time", where=5)
    assert "read_files" not in repr(table.usage("time"))


@pytest.mark.parametrize("damaged", ["snapshot/snapshot-2", "branch/branch-dev/snapshot/snapshot-1", "tag/tag-v1"])
def test_what_cannot_be_read_makes_unknown_what_would_be_freed(damaged, memory_root):
    table = PaimonTable(*memory_root)
    for number in range(1, 5):
        table.commit([(number, "a")])
    table.fork("dev", 1)
    table.tag("v1", 1)
    table.commit([(5, "a")], removed=["data-1.parquet", "data-3.parquet"], kind="OVERWRITE")
    table.write(damaged, b"damaged")
    opened = open_table(f"memory://{table.root}")

    usage = opened.usage("version", without="3")

    assert usage.unread
    assert usage.groups["exclusive_files"].null_count == len(usage.groups)
    assert usage.removal.freed_files is None
    assert not len(usage.removal.freed)
    assert "Without version 3: unknown." in repr(usage)
    assert "What would be freed is unknown" in repr(usage)
    assert usage.verdict.endswith("and there may be more.")
    assert usage.summary["group"].to_pylist() == ["newest version", "others, as far as known"]


def test_a_range_frees_what_only_its_versions_have(scenario):
    table = open_table(scenario.url)
    versions = table.versions()

    removal = table.usage(without=f"{versions[0]}..{versions[3]}").removal

    assert removal.versions == versions[:4]
    assert removal.freed_files == 3
    assert removal.freed["removed_version"].to_pylist() == [versions[3], versions[4], versions[4]]
    assert "nothing holds 3 files" in repr(table.usage(without=f"{versions[0]}..{versions[3]}"))


def test_what_cannot_be_removed_or_grouped_is_refused(scenario):
    table = open_table(scenario.url)

    with pytest.raises(InvalidArgumentError, match="is the newest version, which is not removed"):
        table.usage(without="latest")
    with pytest.raises(SnapshotNotFoundError, match="99"):
        table.usage(without=99)
    with pytest.raises(InvalidArgumentError, match="Did you mean version?"):
        table.usage("versions")


def check_mildest(table):
    """Compare the expiry that frees enough with the retention of every number of versions."""
    count = len(table.versions())

    def freed(keep, number):
        try:
            return table.retention(keep, keep_last=number).freed_bytes
        except InvalidArgumentError:  # VACUUM has no such rule
            return 0

    by_number = {number: max(freed(keep, number) for keep in ("0d", None)) for number in range(count, 0, -1)}
    for needed in {size for size in by_number.values() if size}:
        expiry = table.usage(to_free=needed).expiry
        assert expiry.is_enough
        assert expiry.keep_last == next(number for number, size in by_number.items() if size >= needed)
        assert expiry.retention.commands
        assert "table.retention(" in repr(table.usage(to_free=needed))
    most = table.usage(to_free="1.5 GB").expiry
    assert (most.is_enough, most.keep_last, most.needed_bytes) == (False, 1, 1_500_000_000)
    return by_number


def test_the_mildest_expiry_that_frees_enough_is_found(scenario):
    table = open_table(scenario.url)
    refusals = {"delta": "VACUUM", "ducklake": "to_free is not supported for DuckLake tables: they expire by age alone"}
    if scenario.format in refusals:
        with pytest.raises(UnsupportedFeatureError, match=refusals[scenario.format]):
            table.usage(to_free=1)
        return

    assert max(check_mildest(table).values()) > 0


def test_the_mildest_expiry_of_a_delta_table_is_found(tmp_path):
    table = open_table(shutil.copytree(TABLES / "delta" / "schema_changes", tmp_path / "copy"))

    assert max(check_mildest(table).values()) > 0


@pytest.mark.parametrize(
    ("path", "kinds"),
    [
        ("paimon/changelog_full", "change data, manifest, metadata"),
        ("paimon/append_parquet", "manifest, metadata"),
        ("delta/change_feed", "change data, metadata"),
        ("delta/checkpoint_v2_parquet", "deletion vector, metadata"),
        ("iceberg/branches_tags", "manifest, metadata"),
        ("iceberg/v2_mor_partitioned", "delete, manifest, metadata"),
        ("hudi/v9_cow_basic", "metadata"),
        ("hudi_change_data/logged_cow_6_keys", "change data, metadata"),
    ],
)
def test_everything_is_what_the_folder_has(path, kinds, tmp_path):
    root = Path(shutil.copytree(TABLES / path, tmp_path / "copy"))
    (root / "README").unlink(missing_ok=True)
    (root / "lost.parquet").write_bytes(b"lost")
    for file in root.rglob("*"):
        os.utime(file, (0, 0))
    files = [file for file in root.rglob("*") if file.is_file()]

    usage = open_table(root).usage(everything=True)

    rows = {row["group"]: (row["files"], row["size_bytes"]) for row in usage.summary.to_dict()}
    beside = [group for group in rows if group.endswith(" files") and group != "orphaned files"]
    assert ", ".join(group.removesuffix(" files") for group in beside) == kinds
    assert rows["orphaned files"] == (1, 4)
    totals = tuple(map(sum, zip(*rows.values(), strict=True)))
    assert totals == (len(files), sum(file.stat().st_size for file in files))


def test_change_data_below_random_prefixes_is_counted_as_such():
    summary = open_table(samples.path("payments")).usage(everything=True).summary.to_dict()

    files = {row["group"]: row["files"] for row in summary}
    assert files["change data files"] == 4  # three in _change_data, one in OS
    assert "other data files" not in files


def test_a_price_adds_the_cost_of_each_row(scenario):
    table = open_table(scenario.url)

    rows = table.usage(price=2).groups.to_dict()

    assert [row["cost_per_month"] for row in rows] == pytest.approx([row["size_bytes"] * 2e-9 for row in rows])
    assert "cost_per_month" not in table.usage().groups.column_names
    prices = {"write": 5, "read": 0.5}
    for row in (*table.usage(price=prices).groups.to_dict(), *table.usage(price=prices).summary.to_dict()):
        assert (row["cost_to_read"], row["cost_to_write"]) == (row["files"] * 0.0005, row["files"] * 0.005)
        assert "cost_per_month" not in row
    read = table.usage("time", where="id > 0", price=prices).groups
    assert [row["cost_to_read"] for row in read.to_dict()] == [row["read_files"] * 0.0005 for row in read.to_dict()]
    assert "cost_to_read" in read.drawn
    with pytest.raises(InvalidArgumentError, match="The names of prices are gb_month, read, write; got 'get'"):
        table.usage(price={"get": 1})
    for price in (-1, "1", True, float("nan"), {"read": "1"}):
        with pytest.raises(InvalidArgumentError, match=r"price.* must be a number of 0 or more"):
            table.usage(price=price)
    for size in (-1, "much", 1.5, True):
        with pytest.raises(InvalidArgumentError, match="to_free must be a number of bytes"):
            table.usage(to_free=size)


def test_commits_are_not_read_again_after_lifetimes(tmp_path):
    shutil.copytree(TABLES / "delta" / "dv_partitioned", tmp_path, dirs_exist_ok=True)
    table, expected = (open_table(str(tmp_path)) for _ in range(2))
    grouped = ("commit", "operation", "user", "day", "time")
    groups = {by: repr(expected.usage(by).groups.to_dict()) for by in grouped}
    table.lifetimes()
    for file in sorted((tmp_path / "_delta_log").glob("*.json"))[1:-1]:  # of the first one lifetimes read the state
        before = file.stat()
        file.write_bytes(b"?" * before.st_size)
        os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))

    assert {by: repr(table.usage(by).groups.to_dict()) for by in grouped} == groups
