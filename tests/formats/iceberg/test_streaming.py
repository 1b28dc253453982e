"""Plans read some manifests at a time, and keep only the files that a condition does not rule out."""

import weakref

import fsspec
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snapshot_explorer import open_table, samples
from snapshot_explorer.history import history_of
from tests.inner.engines import parse_condition
from tests.inner.iceberg import contents, manifest_lists
from tests.support.iceberg.table_builder import IcebergTable

COMMITS = 12


class _WithBounds(IcebergTable):
    """A table whose manifests have the bounds of each column."""

    def data_file(self, name, rows):
        ends = {"lower_bounds": min(rows), "upper_bounds": max(rows)}
        pairs = {
            kind: [{"key": 1, "value": number.to_bytes(8, "little")}, {"key": 2, "value": text.encode()}]
            for kind, (number, text) in ends.items()
        }
        return super().data_file(name, rows) | pairs


@pytest.fixture(scope="module")
def table():
    """A table of files of five consecutive ids each, a manifest for each file, and one delete file."""
    written = _WithBounds(fsspec.filesystem("memory"), "/streaming/t")
    for number in range(COMMITS):
        written.commit([(5 * number + place, f"n{number}") for place in range(5)])
    written.delete("data-3.parquet", [0])
    return open_table("memory://streaming/t")


@pytest.fixture(scope="module", params=[1, 600, None])
def limits(request):
    """Bytes of manifests that are decoded at a time: those of one manifest, of a few, or of all."""
    with pytest.MonkeyPatch.context() as patch:
        if request.param is not None:
            patch.setattr(contents, "_DECODED_BYTES", request.param)
            patch.setattr(contents, "_READ_BYTES", 3 * request.param)
        yield request.param


@settings(max_examples=32)
@given(
    column=st.sampled_from(["id", "name"]),
    operator=st.sampled_from(["=", "<", "<=", ">", ">="]),
    number=st.integers(-1, 5 * COMMITS),
)
def test_a_plan_has_the_files_of_the_full_list_that_a_condition_does_not_rule_out(
    table, limits, column, operator, number
):
    value = number if column == "id" else f"n{number // 5}"
    files = table.current.files(statistics=True).to_arrow()
    lower, upper = (files[end].combine_chunks().field(column) for end in ("lower", "upper"))
    passes = {
        "=": pc.and_(pc.less_equal(lower, value), pc.greater_equal(upper, value)),
        "<": pc.less(lower, value),
        "<=": pc.less_equal(lower, value),
        ">": pc.greater(upper, value),
        ">=": pc.greater_equal(upper, value),
    }[operator]

    version = history_of(table).table_format.version(table.current.version)
    plan = version.plan(parse_condition(f"{column} {operator} {value!r}", version.arrow_schema))

    assert [path for split in plan.splits for path in split.files] == files.filter(passes)["path"].to_pylist()
    skipped = files.filter(pc.invert(passes))
    assert plan.skipped()["files"].to_pylist() == ([len(skipped)] if len(skipped) else [])
    assert pc.sum(plan.skipped()["size_bytes"]).as_py() == pc.sum(skipped["size_bytes"]).as_py()


def test_files_of_earlier_manifests_are_gone_when_the_next_are_decoded(table, monkeypatch):
    monkeypatch.setattr(contents, "_DECODED_BYTES", 1)
    version = history_of(table).table_format.version(table.current.version)
    earlier, sizes = [], []

    def select(files, _):
        sizes.append((len(files), sum(batch() is not None for batch in earlier[1:])))
        earlier.append(weakref.ref(files))
        return files.slice(0, 0)

    live = contents.live_files(version._source, version._snapshot, select=select)

    assert len(live.data) == 0
    assert len(live.deletes) == 1
    assert sizes[1:] == [(1, 0)] * COMMITS


def test_manifest_lists_are_decoded_a_few_at_a_time_with_the_same_answers(monkeypatch):
    path = samples.path("shipments")

    def answers():
        table = open_table(path)
        versions = table.history(limit=None).column("version").to_pylist()
        manifests = [table.at(version).manifests().to_arrow() for version in versions]
        return [table.lifetimes().to_arrow(), *manifests, table.row_changes(versions[-1], versions[0])]

    whole = answers()
    monkeypatch.setattr(manifest_lists, "_DECODED_BYTES", 1)

    assert answers() == whole
