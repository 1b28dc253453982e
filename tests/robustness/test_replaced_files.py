"""Files of a table that were replaced by others: refused, with what is recorded and what is there."""

import json
import os
import random
import re
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from snapshot_explorer import errors, open_table
from tests.support import damage_search, fault_search
from tests.support.delta.table_builder import DeltaTable
from tests.support.faults import registered
from tests.support.iceberg.table_builder import IcebergTable

CASES = 6
"""Cases of each kind of damage to a table; `python -m tests.support.damage_search --sample N --seed N` tries more."""
EVERY_KIND = ("delta/dv_partitioned", "iceberg/v2_mor_partitioned", "paimon/append_parquet")
"""Tables to which every kind of damage can happen, in many files."""
SEED = int(os.environ.get("SNAPSHOT_EXPLORER_SEED", "13"))


@pytest.fixture
def copied(tmp_path):
    def copy(name):
        shutil.copytree(fault_search.tables()[name], tmp_path / "t")
        return tmp_path / "t"

    return copy


def _others(paths, *, same_size):
    """Return two of some files, of the same size or not."""
    for path in paths:
        for other in paths:
            sizes_agree = path.stat().st_size == other.stat().st_size
            if path.read_bytes() != other.read_bytes() and sizes_agree == same_size:
                return path, other
    raise LookupError


def _replaced(path, other):
    path.write_bytes(other.read_bytes())
    return path.name


def _refuses_all(table, match):
    """Assert that reading some version of a table is refused."""
    messages = []
    for version in table.versions():
        try:
            table.at(version).to_arrow()
        except errors.CorruptTableError as error:
            messages.append(str(error))
    assert any(all(part in message for part in match) for message in messages), messages


@pytest.mark.parametrize(
    ("table", "pattern", "recorded"),
    [
        ("iceberg/v2_cow", "data/**/*.parquet", "its manifest records"),
        ("iceberg/v2_equality_deletes", "data/*-eq.parquet", "its manifest records"),
        ("iceberg/v3_dv", "data/**/*.puffin", "its manifest records"),
        ("delta/dv_partitioned", "part=*/*.parquet", "its action in the log records"),
        ("delta/checkpoint_v2_json", "_delta_log/_sidecars/*.parquet", None),
        ("paimon/append_parquet", "bucket-0/*.parquet", "its manifest records"),
        ("paimon/dv", "index/index-*", "its index manifest records"),
        ("paimon/dv_1_4", "manifest/manifest-[!l]*", "the table's metadata records"),
    ],
)
def test_a_file_of_another_size_is_refused_with_both_sizes(copied, table, pattern, recorded):
    root = copied(table)
    if recorded is None:
        (path,) = root.glob(pattern)
        path.write_bytes(path.read_bytes() + b"PAR1")
        name, recorded = path.name, "records"
    else:
        path, other = _others(sorted(root.glob(pattern)), same_size=False)
        name = _replaced(path, other)

    if "sidecar" in pattern:
        from snapshot_explorer.storage import Storage
        from tests.inner.delta import list_log, read_checkpoint

        storage = Storage(root)
        with pytest.raises(errors.CorruptTableError, match=rf"{name} has \d+ bytes, but .* records \d+"):
            read_checkpoint(storage, list_log(storage).checkpoints[-1])
        return
    _refuses_all(open_table(root), (name, f"has {path.stat().st_size} bytes", recorded))


def test_the_manifest_list_of_another_snapshot_is_refused(copied):
    root = copied("iceberg/v2_cow")
    path, other = _others(sorted((root / "metadata").glob("snap-*.avro")), same_size=False)
    name = _replaced(path, other)

    _refuses_all(open_table(root), (name, "its snapshot-id is"))


def test_the_manifest_of_another_snapshot_is_refused(copied):
    root = copied("iceberg/v2_cow")
    (manifest,) = open_table(root).current.manifests().to_arrow()["path"].to_pylist()
    path = root / "metadata" / manifest.rpartition("/")[2]
    name = _replaced(path, next(one for one in root.glob("metadata/*-m0.avro") if one != path))

    _refuses_all(open_table(root), (name, "its manifest list records"))


def test_the_checkpoint_of_another_version_is_refused_where_the_hint_names_its_size(tmp_path):
    table = DeltaTable(None, tmp_path)
    table.append([(1, "a")])
    (older,) = table.checkpoint()
    table.append([(2, "b"), (3, "c")])
    (newest,) = table.checkpoint()
    table.hint(table.version, sizeInBytes=len(table.read(newest)))
    expected = open_table(tmp_path).current.to_arrow()
    table.write(newest, table.read(older))

    assert open_table(tmp_path).current.to_arrow().equals(expected)
    table.clean(table.version + 1)
    table.remove_file(older)
    with pytest.raises(
        errors.CorruptTableError, match=r"checkpoint.parquet has \d+ bytes, but _delta_log/_last_checkpoint"
    ):
        open_table(tmp_path).current.to_arrow()


def test_the_snapshot_of_another_version_is_refused(copied):
    root = copied("samples/orders")
    newest = max(root.glob("snapshot/snapshot-*"), key=lambda path: int(path.name.partition("-")[2]))
    before = newest.with_name(f"snapshot-{int(newest.name.partition('-')[2]) - 1}")
    _replaced(newest, before)

    with pytest.raises(errors.CorruptTableError, match=f"{newest.name} contains snapshot"):
        open_table(root)


def test_a_rewritten_position_delete_file_is_read_if_its_paths_and_positions_are_recorded(copied):
    root = copied("iceberg/v2_mor_partitioned")
    expected = open_table(root).current.to_arrow()
    for path in root.glob("data/**/*deletes*.parquet"):
        pq.write_table(pq.read_table(path), path, compression="none", use_dictionary=False)

    assert open_table(root).current.to_arrow().equals(expected)


class OldWriterTable(IcebergTable):
    """A table whose data files another version of Parquet wrote, with sizes that are too large or too small."""

    writer: bytes
    surplus: int

    def data_file(self, name, rows):
        record = super().data_file(name, rows)
        data = pq.read_table(pa.BufferReader(self.filesystem.cat_file(f"{self.root}/data/{name}")))
        out = pa.BufferOutputStream()
        pq.write_table(data.replace_schema_metadata({"iceberg.schema": "{}"}), out)
        content = out.getvalue().to_pybytes()
        own = re.search(rb"parquet-cpp-arrow version [\d.]+", content)[0]
        size = self.write(f"data/{name}", content.replace(own, self.writer[: len(own)].ljust(len(own))))
        return record | {"file_size_in_bytes": size + self.surplus}


@pytest.mark.parametrize(
    ("writer", "surplus", "is_read"),
    [
        (b"parquet-mr version 1.11.1 (build", 500, True),
        (b"parquet-mr version 1.12.0 (build", 500, False),
        (b"parquet-mr version 1.11.1 (build", -1, False),
    ],
)
def test_a_size_that_old_writers_of_iceberg_overstated_is_not_compared(memory_root, writer, surplus, is_read):
    table = OldWriterTable(*memory_root)
    table.writer, table.surplus = writer, surplus
    table.commit([(1, "a"), (2, "b")])

    opened = open_table(f"memory://{memory_root[1]}")

    if is_read:
        assert opened.current.to_arrow()["id"].to_pylist() == [1, 2]
    else:
        with pytest.raises(errors.CorruptTableError, match=r"data-1.parquet has \d+ bytes, but its manifest records"):
            opened.current.to_arrow()


def test_an_unknown_size_of_a_delta_file_is_not_compared(copied):
    root = copied("delta/times_stored")
    for commit in root.glob("_delta_log/*.json"):
        actions = [json.loads(line) for line in commit.read_text().splitlines()]
        for action in actions:
            for body in action.values():
                if "size" in body:
                    body["size"] = 0
        commit.write_text("".join(f"{json.dumps(action)}\n" for action in actions))

    assert open_table(root).current.to_arrow().num_rows > 0


def _tables():
    """Return a table of each format, drawn at random."""
    names = [name for name in fault_search.tables() if not name.endswith("/empty")]
    draw = random.Random(SEED)
    return [draw.choice([name for name in names if name.startswith(f"{one}/")]) for one in fault_search.FORMATS]


@pytest.mark.parametrize("table", dict.fromkeys([*EVERY_KIND, *_tables()]))
def test_no_call_answers_wrongly_where_one_file_is_damaged(table):
    counts, findings = damage_search.run([table], sample=CASES, seed=SEED)

    assert not [str(finding) for finding in findings]
    assert counts["cases"] >= CASES * (len(damage_search.KINDS) if table in EVERY_KIND else 1)


@pytest.mark.parametrize("name", ["delta/dv_partitioned", "paimon/append_parquet"])
def test_every_public_call_is_right_where_a_version_in_the_middle_is_missing(name):
    with registered():
        table = damage_search.DamagedTables(name, fault_search.tables()[name])
        damage = [one for one in table.damages() if one.kind == "removed"][-1]

        findings = [table.find(damage, call) for call in table.bench.calls]

    assert not [str(finding) for finding in findings if finding is not None]


def test_the_patterns_of_files_that_nothing_describes_match_files_of_the_tables():
    paths = [
        path.relative_to(folder).as_posix()
        for folder in fault_search.tables().values()
        for path in Path(folder).rglob("*")
    ]

    assert all(any(damage_search.re.search(pattern, path) for path in paths) for pattern in damage_search.UNRECORDED)
