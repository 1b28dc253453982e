"""What questions cost on an object store, counted in requests."""

from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest

from snapshot_explorer import open_table, samples, twins
from snapshot_explorer.engines import local
from snapshot_explorer.formats import detect
from snapshot_explorer.storage import Storage
from snapshot_explorer.table import parts_of, read_overview
from tests.inner.engines import parse_condition
from tests.support import filesystems
from tests.support.delta.table_builder import DeltaTable, add, remove
from tests.support.hudi.table_builder import HudiTable, records
from tests.support.iceberg.table_builder import IcebergTable
from tests.support.paimon.table_builder import PaimonTable
from tests.support.scenarios import SCENARIOS, played

DATA = Path(__file__).parents[1] / "data"


def history_of(commits, memory_root):
    filesystem, root = memory_root
    written = PaimonTable(filesystem, f"{root}/{commits}")
    for number in range(commits):
        written.commit([(number, "x")])
        if number % 10 == 9:
            written.merge_manifests()
    return written


def asked(counted, question):
    """Return how many requests a question makes, and its answer."""
    counted.requests.clear()
    answer = question()
    return len(counted.requests), answer


@pytest.fixture
def short_and_long(memory_root):
    return history_of(3, memory_root), history_of(120, memory_root)


def test_opening_costs_the_same_however_long_the_history_is(counted, short_and_long):
    costs = [asked(counted, lambda w=written: open_table(f"counted://{w.root}"))[0] for written in short_and_long]

    assert costs[0] == costs[1]
    assert costs[1] <= 8


def test_the_card_reads_nothing_and_has_the_format_version_and_features(counted, short_and_long):
    overviews, cards = [], []
    for written in short_and_long:
        table = open_table(f"counted://{written.root}")
        overviews.append(asked(counted, lambda t=table: read_overview(t))[0])
        cards.append(asked(counted, lambda t=table: t._repr_mimebundle_()["text/plain"]))

    assert [cost for cost, _ in cards] == [0, 0]
    assert "snapshot 3: parquet files, " in cards[0][1]
    assert overviews[0] <= 17


def test_updating_and_going_to_a_version_cost_the_same_however_long_the_history_is(counted, short_and_long):
    updates, travels = [], []
    for written in short_and_long:
        table = open_table(f"counted://{written.root}")
        updates.append(asked(counted, table.update)[0])
        travels.append(asked(counted, lambda t=table: t.at(2))[0])

    assert updates[0] == updates[1] <= 4
    assert travels == [1, 1]


def test_the_files_of_a_version_cost_one_read_per_manifest_and_list(counted, short_and_long):
    written = short_and_long[1]
    table = open_table(f"counted://{written.root}")
    manifests = table.current.manifests().num_rows

    cost, files = asked(counted, table.current.files)

    assert files.num_rows == 120
    assert cost <= manifests + 3


def test_a_time_is_found_by_bisection(counted, short_and_long):
    table = open_table(f"counted://{short_and_long[1].root}")

    cost, snapshot = asked(counted, lambda: table.at("@2026-01-01T01:00:30Z"))

    assert snapshot.version == 60
    assert cost <= 12


def test_a_page_of_history_reads_that_page_only(counted, short_and_long):
    table = open_table(f"counted://{short_and_long[1].root}")

    cost, history = asked(counted, lambda: table.history(limit=5))

    assert history["version"].to_pylist() == [120, 119, 118, 117, 116]
    assert cost <= 5 * 3 + 6


@pytest.mark.parametrize("where", [None, "id >= 20"])
def test_row_changes_read_the_newest_schema_once(counted, memory_root, where):
    table = open_table(f"counted://{history_of(30, memory_root).root}")

    asked(counted, lambda: table.row_changes(1, 30, where=where))

    schemas = [request.kind for request in counted.requests if "/schema" in request.path]
    assert schemas.count("get") == 1
    assert schemas.count("list") == 2  # with the log, and for the changes


@pytest.fixture
def orders(memory_root):
    """The path of a copy of the sample `orders`, which has 18 versions, two tags and a branch."""
    return copied(Path(samples.path("orders")), memory_root)


def copied(folder, memory_root):
    """Return the path of a copy of a table in memory."""
    filesystem, root = memory_root
    for path in (path for path in folder.rglob("*") if path.is_file()):
        filesystem.pipe_file(f"{root}/{folder.name}/{path.relative_to(folder)}", path.read_bytes())
    return f"{root}/{folder.name}"


@pytest.mark.parametrize(
    ("folder", "where", "read"),
    [
        ("events", "day >= '2026-11-03'", 0),
        ("events", "day > '2026-11-02' and country = 'DE'", 5),
        ("delta/dv_partitioned", "part = 1 or part is null", 0),
        ("iceberg/v2_mor_partitioned", "kind = 'y'", 0),
        ("iceberg/v2_mor_partitioned", "kind = 'x'", 2),  # equality deletes leave the number of rows open
    ],
)
def test_rows_of_partitions_are_counted_without_a_data_file(counted, memory_root, folder, where, read):
    path = DATA / folder if "/" in folder else Path(samples.path(folder))
    snapshot = open_table(f"counted://{copied(path, memory_root)}").current

    _, number = asked(counted, lambda: snapshot.count(where=where))

    opened = {one.path for one in counted.requests if one.path.endswith(".parquet")}
    assert number == snapshot.to_arrow(where=where).num_rows
    assert len(opened) == read


@pytest.mark.parametrize(
    ("folder", "column"), [("events", "day"), ("delta/dv_partitioned", "part"), ("iceberg/v2_mor_partitioned", "kind")]
)
def test_columns_of_partitions_are_read_without_the_data_files_whose_rows_are_counted(
    counted, memory_root, folder, column
):
    path = DATA / folder if "/" in folder else Path(samples.path(folder))
    snapshot = open_table(f"counted://{copied(path, memory_root)}").current
    splits = parts_of(snapshot).loaded.version.plan().splits

    _, rows = asked(counted, lambda: snapshot.to_arrow(columns=[column]))

    opened = {one.path.rsplit("/", 1)[1] for one in counted.requests if one.path.endswith(".parquet")}
    free = [split for split in splits if split.raw or split.live_rows is not None]
    assert free
    assert opened.isdisjoint(path.rsplit("/", 1)[1] for split in free for path in split.files)
    assert rows == snapshot.to_arrow().select([column])


def test_the_size_of_a_data_file_is_taken_from_its_manifest(counted, orders):
    table = open_table(f"counted://{orders}")

    asked(counted, table.current.to_arrow)

    assert {request.kind for request in counted.requests if "/bucket-" in request.path} == {"get"}


def test_independent_requests_are_made_at_the_same_time(register, orders):
    from tests.support import filesystems

    slow = register(filesystems.counting("slow", in_rounds=True))
    table = open_table(f"slow://{orders}")
    questions = {
        "versions": table.versions,
        "plan": table.current.plan,
        "history": table.history,
        "lifetimes": table.lifetimes,
        "retention": lambda: table.retention(keep="1d"),
        "row_changes": lambda: table.row_changes(15, 17),
    }
    costs = {}
    for name, question in questions.items():
        slow.requests.clear()
        slow.rounds = 0
        question()
        costs[name] = (len(slow.requests), slow.rounds)

    most = {
        "versions": (8, 3),
        "plan": (8, 5),
        "history": (63, 5),
        "lifetimes": (55, 8),
        "retention": (41, 13),
        "row_changes": (17, 8),
    }
    assert {name: one for name, one in costs.items() if one[0] > most[name][0] or one[1] > most[name][1]} == {}


def delta_history(commits, memory_root):
    """Write a Delta table with a checkpoint each 100 commits; each commit adds a file and removes the one before."""
    filesystem, root = memory_root
    written = DeltaTable(filesystem, f"{root}/delta-{commits}")
    for number in range(1, commits + 1):
        written.commit(add(f"{number}", size=500, rows=1), *([remove(f"{number - 1}", size=500)] if number > 1 else []))
        if number % 100 == 0:
            written.checkpoint()
    for number in range(commits - 100, commits):
        written.write(f"{number}", b"PAR1")
    return written


@pytest.mark.parametrize("make", [history_of, delta_history])
def test_twenty_commits_of_a_long_history_cost_what_those_of_a_short_one_do(counted, memory_root, make):
    costs = []
    for commits in (130, 1_030):
        written = make(commits, memory_root)
        table = open_table(f"counted://{written.root.lstrip('/')}")
        newest, newest_page = asked(counted, lambda t=table: t.history(limit=20))
        middle, middle_page = asked(counted, lambda t=table: t.history("..60", limit=20))
        costs.append((newest, middle))
        assert newest_page["version"].to_pylist() == list(range(commits, commits - 20, -1))
        assert middle_page["version"].to_pylist() == list(range(60, 40, -1))

    assert costs[0] == costs[1]
    assert max(costs[0]) < 200


def test_manifests_are_read_at_the_same_time(register, short_and_long):
    from tests.support import filesystems

    slow = register(filesystems.counting("slow", in_rounds=True))
    written = short_and_long[1]

    open_table(f"slow://{written.root}").current.files()

    assert slow.most_at_once > 1


def test_a_table_on_s3_reads_like_one_on_disk(s3, memory_root):
    client, bucket, options = s3
    written = history_of(5, memory_root)
    for path in written.filesystem.find(written.root):
        client.put_object(
            Bucket=bucket,
            Key="shop.db/" + path.removeprefix(written.root + "/"),
            Body=written.filesystem.cat_file(path),
        )

    table = open_table(f"s3://{bucket}/shop.db", storage_options=options)

    assert table.current.version == 5
    assert sorted(table.at(3).to_arrow()["id"].to_pylist()) == [0, 1, 2]
    assert options["secret"] not in repr(table) + repr(table.current) + repr(table.history())


@pytest.fixture
def by_day(memory_root):
    """A table of 40 commits, each of one partition and with a manifest of its own; the last removes a file."""
    written = PaimonTable(*memory_root, by_name=True)
    for number in range(40):
        written.commit([(number, None if number % 10 == 9 else f"day {number % 10}")])
    written.commit([(99, "day 3")], removed=["data-4.parquet"])
    return written


def manifests_read(counted, question):
    """Return how many manifests a question reads, and its answer."""
    _, answer = asked(counted, question)
    paths = [one.path for one in counted.requests if one.kind == "get" and "/manifest/manifest-" in one.path]
    return len([path for path in paths if "manifest-list" not in path]), answer


@pytest.mark.parametrize(
    ("where", "manifests", "ids"),
    [
        ("name = 'day 3'", 5, [13, 23, 33, 99]),
        ("name > 'day 7' and id > 20", 4, [28, 38]),
        ("name is null", 4, [9, 19, 29, 39]),
        ("name = 'day 11'", 0, []),
        ("coalesce(name, 'none') = 'none'", 41, [9, 19, 29, 39]),
        ("id = 13", 41, [13]),
        ("name = 'day 3' or id = 5", 41, [5, 13, 23, 33, 99]),
    ],
)
def test_a_condition_on_a_partition_reads_only_the_manifests_that_can_hold_it(counted, by_day, where, manifests, ids):
    snapshot = open_table(f"counted://{by_day.root}").current

    read, rows = manifests_read(counted, lambda: snapshot.to_arrow(where=where))

    assert sorted(rows["id"].to_pylist()) == ids
    assert read == manifests
    assert manifests_read(counted, lambda: snapshot.count(where)) == (manifests, len(ids))


def test_a_plan_counts_what_manifests_hold_that_it_does_not_read(counted, by_day, caplog):
    snapshot = open_table(f"counted://{by_day.root}").current

    read, plan = manifests_read(counted, lambda: snapshot.plan("name = 'day 3'"))

    assert read == 5
    skipped = [row for row in plan.to_dict() if row["skipped"]]
    assert skipped == [
        {
            "partition": None,
            "bucket": None,
            "raw": None,
            "files": 36,
            "rows": 36,
            "size_bytes": None,
            "skipped": "partition",
        }
    ]
    assert sum(row["files"] for row in plan.to_dict()) == snapshot.files().num_rows == 40
    assert not caplog.records


def test_files_of_a_partition_cost_the_manifests_that_can_hold_it(counted, by_day):
    snapshot = open_table(f"counted://{by_day.root}").current
    by_name = parse_condition("name = 'day 3'", snapshot.arrow_schema)

    read, files = manifests_read(counted, lambda: parts_of(snapshot).loaded.version.files(by_name))

    assert read == 5
    assert files["path"].to_pylist() == [f"name=day 3/bucket-0/data-{number}.parquet" for number in (14, 24, 34, 41)]
    assert files["added_version"].to_pylist() == [None, None, None, 41]


def test_changes_of_a_partition_cost_the_manifests_that_can_hold_it(counted, by_day):
    table = open_table(f"counted://{by_day.root}")

    read, rows = manifests_read(counted, lambda: table.row_changes(0, 40, where="name = 'day 3'"))

    assert rows["id"].to_pylist() == [3, 13, 23, 33]
    assert read == 4


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.format)
@pytest.mark.parametrize("backwards", [False, True], ids=["forwards", "backwards"])
def test_a_comparison_that_was_displayed_reads_nothing_when_it_is_displayed_again(
    scenario, backwards, counted, memory_root
):
    commits = played(scenario(*memory_root))
    versions = commits.earliest, commits.earliest + 4
    url = commits.url.replace("memory://", "counted://")
    comparison = open_table(url).compare(*(versions[::-1] if backwards else versions))
    first, text = asked(counted, lambda: repr(comparison))

    again = [
        asked(counted, lambda: repr(comparison)),
        asked(counted, lambda: comparison._repr_mimebundle_()["text/plain"]),
        asked(counted, lambda: repr(comparison.showing("summary", "files", "commits")))[:1],
    ]

    assert first > 0 or commits.url != f"memory://{commits.root}"  # a catalog was read as a whole when it was opened
    assert again == [(0, text), (0, text), (0,)]


def many_files(memory_root, files):
    """Write a Delta table with this many files; return it, and the size of a file."""
    filesystem, root = memory_root
    table = DeltaTable(filesystem, f"{root}/many")
    for number in range(files):
        table.append([(number, "x" * 100)], name=f"{number}.parquet")
    return table, filesystem.size(f"{table.root}/9.parquet")


@pytest.mark.parametrize("question", ["rows", "two columns", "rows of a condition", "difference"])
def test_files_are_fetched_many_at_once_on_any_machine(register, memory_root, question):
    counted = register(filesystems.counting(in_rounds=True))
    written, _ = many_files(memory_root, 64)
    table = open_table(f"counted://{written.root}")
    now, first = table.at("latest"), table.at("earliest")
    now.files(), first.files()
    counted.requests.clear()
    counted.most_at_once = 0

    answers = {
        "rows": lambda: now.to_arrow().num_rows,
        "two columns": lambda: now.to_arrow(columns=["id"]).num_rows,
        "rows of a condition": lambda: now.to_arrow(where="id >= 0").num_rows,
        "difference": lambda: table.diff_rows("earliest", "latest").to_arrow().num_rows,
    }
    assert answers[question]() == 64

    data = [request for request in counted.requests if request.kind == "get" and request.path.endswith(".parquet")]
    assert len(data) == 64
    assert 8 < counted.most_at_once <= 64


def many_slices(memory_root, slices):
    """Write a Hudi table of this many base files, each merged with a log file; return it, and the size of a slice."""
    filesystem, root = memory_root
    table = HudiTable(filesystem, f"{root}/many", properties={"hoodie.table.type": "MERGE_ON_READ"})
    for number in range(slices):
        table.insert([(number, "x" * 100)], action="deltacommit")
    for number in range(slices):
        table.log(f"data-{number + 1}", [records(slices + number + 1, [(number, "y" * 1000)])])
    return table, sum(filesystem.size(path) for path in filesystem.glob(f"{table.root}/*data-9_*"))


@pytest.mark.parametrize("write", [many_files, many_slices])
def test_the_bytes_that_are_fetched_at_once_are_bounded(register, memory_root, monkeypatch, write):
    counted = register(filesystems.counting(in_rounds=True))
    written, size = write(memory_root, 48)
    monkeypatch.setattr(local, "REMOTE_BYTES", 12 * size)
    now = open_table(f"counted://{written.root}").at("latest")
    now.files()
    counted.most_bytes_at_once = 0

    assert now.to_arrow().num_rows == 48

    assert 8 * size < counted.most_bytes_at_once < 13 * size


def test_a_delta_table_opens_in_four_rounds_however_long_its_log_is(register, memory_root):
    counted = register(filesystems.counting(in_rounds=True))
    filesystem, root = memory_root
    written = DeltaTable(filesystem, f"{root}/long")
    for number in range(30):
        written.append([(number, "x")])
        if number == 20:
            written.checkpoint()
            written.hint(written.version)

    table = open_table(f"counted://{written.root}")

    # The folder, and the first files of other formats; the hint and the log; the checkpoint, commits and the checksum.
    assert counted.rounds <= 4
    assert len(counted.requests) <= 18
    assert table.at("latest").to_arrow().num_rows == 30


def test_a_format_is_detected_in_a_listing_and_a_request(counted, memory_root):
    filesystem, root = memory_root
    for name, most in (("orders", 1), ("payments", 1), ("shipments", 2)):
        folder = Path(samples.path(name))
        for file in folder.rglob("*"):
            if file.is_file():
                filesystem.pipe_file(f"{root}/{name}/{file.relative_to(folder)}", file.read_bytes())

        cost, table_format = asked(counted, lambda name=name: detect(Storage(f"counted://{root}/{name}")))

        assert cost == most
        assert table_format is not None


def written_in(filesystem, root, name, commits):
    """Write a table with a data file for each commit; return its URL."""
    table = {"delta": DeltaTable, "paimon": PaimonTable, "iceberg": IcebergTable, "hudi": HudiTable}[name]
    location = {"location": f"counted://{root}"} if name == "iceberg" else {}
    written = table(filesystem, root, **location)
    for number in range(commits):
        add_rows = getattr(written, {"delta": "append", "hudi": "insert"}.get(name, "commit"))
        add_rows([(number, "a"), (number + 1_000, "b")])
    if name == "delta":
        written.checkpoint()
    return f"counted://{root}"


QUESTIONS = {
    "trace": lambda table: table.trace("id = 5"),
    "orphans": lambda table: table.orphans("0d"),
    "verify existence": lambda table: table.verify(),
    "verify footers": lambda table: table.verify("footers"),
    "verify bytes": lambda table: table.verify("bytes"),
    "twins": lambda table: twins(table, open_table(table.path)),
    "repair": lambda table: table.repair(to="latest~1", where="id > 5", key="id"),
}
READS = {"twins": (2, 0), "verify footers": (1, 1), "verify bytes": (1, 1), "trace": (1, 1), "repair": (1, 2)}
"""How often a metadata file and a data file are read: once for each of two tables; for the key of two versions."""


FORMATS = ["delta", "paimon", "iceberg", "hudi"]
ASKED = [(name, question) for name in FORMATS for question in QUESTIONS if (name, question) != ("hudi", "repair")]
"""No statements on rows are written for Hudi."""


@pytest.mark.parametrize(("name", "question"), ASKED)
def test_a_question_about_all_versions_reads_the_files_of_each_commit_once(counted, memory_root, name, question):
    filesystem, root = memory_root
    table = open_table(written_in(filesystem, root, name, commits=12))

    asked(counted, lambda: QUESTIONS[question](table))

    read = Counter(request.path for request in counted.requests if filesystem.isfile(f"/{request.path}"))
    most = dict(zip((False, True), READS.get(question, (1, 0)), strict=True))
    again = {path: count for path, count in read.items() if count > most[path.endswith(".parquet")]}
    assert len(again) <= 3, again  # hints, and what they name


def test_verifying_deletes_reads_each_delete_file_once_however_many_data_files_need_it(counted, memory_root):
    filesystem, root = memory_root
    written = IcebergTable(filesystem, root, location=f"counted://{root}")
    for number in range(10):
        written.commit([(number, "x"), (number + 100, "y")])
        written.delete_ids([number])

    asked(counted, lambda: open_table(f"counted://{root}").verify("bytes"))

    read = Counter(request.path for request in counted.requests if request.path.endswith(".parquet"))
    assert len(read) == 20
    assert sum(read.values()) <= 30  # data files are read once more, with deletes


def test_verifying_deletes_later_reads_the_commits_of_many_versions_at_once(register, memory_root):
    counted = register(filesystems.counting(in_rounds=True))
    written = DeltaTable(*memory_root)
    written.append([(number, "x") for number in range(40)], name="a.parquet")
    vectors = [None, *(written.vector(range(1, number + 2)) for number in range(20))]
    for old, new in pairwise(vectors):
        written.commit(remove("a.parquet", vector=old), add("a.parquet", vector=new, rows=40))
    table = open_table(f"counted://{memory_root[1]}")
    table.lifetimes()
    counted.requests.clear()
    counted.rounds = 0

    assert table.verify("bytes").is_ok
    assert counted.rounds <= 12
