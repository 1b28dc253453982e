"""What questions cost on an object store, counted in requests."""

import pytest

from builders import PaimonTable
from snapshot_explorer import open_table


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


def test_manifests_are_read_at_the_same_time(register, short_and_long):
    import stores

    slow = register(stores.counting("slow", latency=0.005))
    written = short_and_long[1]

    open_table(f"slow://{written.root}").current.files()

    assert slow.most_at_once > 1


@pytest.mark.s3
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
