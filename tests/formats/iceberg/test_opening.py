"""Opening Iceberg tables: by hint, without a hint, by a metadata file, moved, and inside of other formats."""

import gzip
import json
import logging

import pytest

from snapshot_explorer import Limits, open_table
from snapshot_explorer.errors import (
    CorruptTableError,
    InvalidArgumentError,
    LimitError,
    TableNotFoundError,
    UnsupportedFeatureError,
)
from snapshot_explorer.history import history_of
from tests.support.delta.table_builder import DeltaTable, metadata, protocol
from tests.support.iceberg.table_builder import IcebergTable, avro, manifest_schema
from tests.support.paimon.table_builder import PaimonTable


@pytest.fixture
def table(memory_root):
    return IcebergTable(*memory_root)


def opened(table, **options):
    return open_table(f"memory://{table.root}", **options)


def notes(table):
    return history_of(opened(table)).listing.notes


def hint(table, content):
    table.write("metadata/version-hint.text", content)


def test_the_hint_is_followed_forward(table):
    for number in range(1, 9):
        table.commit([(number, "a")])
    hint(table, b"1")

    assert opened(table).current.version == 8


def test_requests_do_not_grow_with_the_history_but_for_manifests_and_data_files(counted, table):
    def cost(question):
        counted.requests.clear()
        question()
        return len(counted.requests)

    for number in range(1, 9):
        table.commit([(number, "a")])
        if number not in (2, 8):
            continue
        found = open_table(f"counted://{table.root}")
        # The folder, the first files of Iceberg, Paimon and Hudi; the metadata file and the next one in three spellings
        # each; the manifest list.
        assert cost(lambda: open_table(f"counted://{table.root}")) == 11
        # The hint, and the metadata files as above, to see whether there is a newer one.
        assert cost(found.update) == 7
        assert cost(found.history) == 7
        # Each manifest; the manifest list was read by opening.
        assert cost(found.current.files) == number
        # Also each data file, whose size the manifest records.
        assert cost(found.current.to_arrow) == number + number


def test_a_hint_to_a_version_that_is_not_there_is_refused(table):
    table.commit([(1, "a")])
    hint(table, b"7\n")

    with pytest.raises(
        CorruptTableError, match="names version 7, but .* has no metadata file v7; the newest one there is v1"
    ):
        opened(table)


@pytest.mark.parametrize("text", ["v1.metadata.json", "v1"])
def test_a_hint_may_be_a_name(table, text):
    table.commit([(1, "a")])
    table.commit([(2, "a")])
    hint(table, text.encode())

    assert opened(table).current.version == 1


def test_a_hint_that_is_neither_is_refused(table):
    table.commit([(1, "a")])
    hint(table, b"../other")

    with pytest.raises(CorruptTableError, match="contains '../other', which is neither a number nor the name"):
        opened(table)


@pytest.mark.parametrize("content", [None, b"", b"\n"])
def test_without_a_hint_the_greatest_number_counts_and_one_warning_says_so(table, content, caplog):
    table.hints = False
    for number in range(1, 12):
        table.commit([(number, "a")])
    if content is not None:
        hint(table, content)

    found = opened(table)
    table.commit([(12, "a")])

    assert (found.current.version, found.update().version) == (11, 12)
    asked = [one for one in caplog.messages if "no catalog was used: the metadata file with the highest number" in one]
    assert len(asked) == (content is None)


def test_of_files_of_one_number_the_one_written_last_counts(table):
    table.hints = False
    table.commit([(1, "a")])
    late = json.dumps(table.metadata | {"last-updated-ms": 5, "current-snapshot-id": -1, "refs": {}}).encode()
    table.commit([(2, "b")])
    content = table.filesystem.cat_file(f"{table.root}/metadata/v2.metadata.json")
    for number in (1, 2):
        table.filesystem.rm(f"{table.root}/metadata/v{number}.metadata.json")
    table.write("metadata/00002-aaaa.metadata.json", content)
    table.write("metadata/00002-ffff.metadata.json", late)

    assert opened(table).current.version == 2
    assert "00002-aaaa.metadata.json is taken, the newest of 2 candidates" in notes(table)[0]


def test_one_metadata_file_is_opened_by_its_path(table):
    table.commit([(1, "a")])
    table.commit([(2, "b")])

    found = open_table(f"memory://{table.root}/metadata/v1.metadata.json")

    assert found.versions() == (1,)
    assert found.current.to_arrow()["id"].to_pylist() == [1]
    assert found.path == f"memory://{table.root}"


def test_a_metadata_file_of_a_local_table_is_opened_by_its_path(tmp_path):
    import fsspec

    table = IcebergTable(fsspec.filesystem("file", auto_mkdir=True), str(tmp_path / "t"), location="s3://lake/t")
    table.commit([(1, "a")])

    found = open_table(tmp_path / "t" / "metadata" / "v1.metadata.json")

    assert found.current.to_arrow()["id"].to_pylist() == [1]
    assert found.path == str(tmp_path / "t")


def test_a_metadata_file_that_is_not_there_is_refused(table):
    table.commit([(1, "a")])

    with pytest.raises(TableNotFoundError, match=r"There is no metadata file metadata/v9.metadata.json in memory://"):
        open_table(f"memory://{table.root}/metadata/v9.metadata.json")


def test_compressed_metadata_is_read_whatever_its_name(table):
    table.commit([(1, "a")])
    content = table.filesystem.cat_file(f"{table.root}/metadata/v1.metadata.json")
    table.filesystem.rm(f"{table.root}/metadata/v1.metadata.json")
    table.write("metadata/v1.gz.metadata.json", gzip.compress(content))

    assert opened(table).current.version == 1


@pytest.mark.parametrize(
    "location",
    ["s3://lake/db/t", "s3a://lake/db/t/", "file:/lake/db/t", "hdfs://node:8020/lake/db/t", "/lake/db/t", "data/db/t"],
)
def test_a_moved_table_is_read_where_it_is_opened(memory_root, location):
    table = IcebergTable(*memory_root, location=location.rstrip("/"))
    table.metadata["location"] = location
    table.commit([(1, "a")])

    found = opened(table)

    assert found.current.to_arrow()["id"].to_pylist() == [1]
    assert found.current.files()["path"].to_pylist() == ["data/data-1.parquet"]
    assert history_of(found).listing.notes == ()


def test_the_first_card_of_a_moved_table_states_where_it_is_recorded_and_nothing_is_logged(memory_root, caplog):
    table = IcebergTable(*memory_root, location="s3://lake/db/t")
    table.commit([(1, "a")])
    first, second = opened(table), opened(table)
    note = "The metadata records the table at s3://lake/db/t; its files are read where it was opened."

    cards = [one._repr_mimebundle_()["text/html"] for one in (first, second, first)]

    assert [card.count(f'<div class="sx-said">{note}</div>') for card in cards] == [1, 0, 1]
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


def test_a_table_at_its_recorded_place_has_no_note(table):
    table.commit([(1, "a")])

    assert notes(table) == ()


def test_paths_may_spell_a_scheme_in_another_way_than_the_location(memory_root):
    table = IcebergTable(*memory_root, location="s3a://lake/db/t")
    table.metadata["location"] = "s3://lake/db/t"
    table.commit([(1, "a")])

    assert opened(table).current.to_arrow().num_rows == 1


def test_a_folder_whose_name_only_begins_like_the_tables_is_another_folder(memory_root):
    table = IcebergTable(*memory_root, location="s3://lake/t")
    table.path = lambda name: f"s3://lake/t_{name}" if name.startswith("data/") else f"s3://lake/t/{name}"
    table.commit([(1, "a")])

    assert opened(table).current.files()["path"].to_pylist() == ["s3://lake/t_data/data-1.parquet"]
    with pytest.raises(UnsupportedFeatureError, match="s3://lake/t_data/data-1.parquet, which is on another storage"):
        opened(table).current.to_arrow()


def test_folders_that_were_moved_elsewhere_are_given(memory_root):
    filesystem, root = memory_root
    table = IcebergTable(filesystem, root, location="s3://lake/t")
    table.path = lambda name: f"s3://elsewhere/{name}" if name.startswith("data/") else f"s3://lake/t/{name}"
    table.commit([(1, "a")])
    filesystem.mv(f"{root}/data", f"{root}-moved", recursive=True)

    with pytest.raises(
        UnsupportedFeatureError, match="s3://elsewhere/data/data-1.parquet, which is on another storage"
    ):
        opened(table).current.to_arrow()
    found = opened(table, relocate={"s3://elsewhere/data": f"memory://{root}-moved"})

    assert found.current.to_arrow()["id"].to_pylist() == [1]


@pytest.mark.parametrize("path", ["/etc/passwd", "file:///etc/passwd", "file:/etc/passwd", "s3://other/secret"])
def test_a_table_on_an_object_store_names_no_file_of_another_storage(table, path):
    table.commit([(1, "a")])
    manifest = next(iter(table.entries))
    entries = [{**one, "data_file": {**one["data_file"], "file_path": path}} for one in table.entries[manifest]]
    table.write(manifest.removeprefix(f"{table.location}/"), avro(manifest_schema(), entries))

    snapshot = opened(table).current

    assert snapshot.files().num_rows == 1
    with pytest.raises(UnsupportedFeatureError, match="which is on another storage than the table itself"):
        snapshot.to_arrow()


@pytest.mark.parametrize("what", ["manifest-list", "location"])
def test_metadata_that_leads_out_of_the_folder_is_refused(table, what):
    table.commit([(1, "a")])
    if what == "manifest-list":
        table.metadata["snapshots"][0]["manifest-list"] = f"{table.location}/../../secret"
    else:
        table.metadata["snapshots"][0]["manifest-list"] = "file:///etc/passwd"
    table.write_metadata()

    with pytest.raises((CorruptTableError, UnsupportedFeatureError)):
        opened(table)


def test_relocation_is_for_iceberg_tables(memory_root):
    table = DeltaTable(*memory_root, first=None)
    table.commit(protocol(), metadata())

    with pytest.raises(InvalidArgumentError, match="is a delta table, which is not opened with relocate"):
        open_table(f"memory://{memory_root[1]}", relocate={"s3://a": "/b"})


@pytest.mark.parametrize("kind", ["delta", "paimon"])
def test_a_table_with_iceberg_metadata_beside_its_own_opens_as_either(memory_root, kind):
    if kind == "delta":
        DeltaTable(*memory_root, first=None).commit(protocol(), metadata())
    else:
        PaimonTable(*memory_root).commit([(7, "z"), (8, "y")])
    IcebergTable(*memory_root).commit([(1, "a")])
    url = f"memory://{memory_root[1]}"

    assert open_table(url).format == kind
    assert open_table(url, format="iceberg").format == "iceberg"
    assert open_table(url, format="iceberg").current.to_arrow().to_pylist() == [{"id": 1, "name": "a"}]
    assert open_table(f"{url}/metadata/v1.metadata.json").format == "iceberg"


def test_a_folder_that_is_not_a_table_is_refused_with_what_tables_have(memory_root):
    filesystem, root = memory_root
    filesystem.pipe_file(f"{root}/metadata/other.txt", b"")

    with pytest.raises(
        TableNotFoundError,
        match="No Paimon, Delta Lake, Iceberg, Hudi or DuckLake table at .* Iceberg tables metadata/",
    ):
        open_table(f"memory://{root}")


@pytest.mark.parametrize("version", [0, 4, 17])
def test_other_format_versions_are_refused_by_name(table, version):
    table.commit([(1, "a")])
    table.write_metadata(**{"format-version": version})

    with pytest.raises(
        UnsupportedFeatureError, match=f"has format version {version}, which is not supported; 1, 2 and 3"
    ):
        opened(table)


def test_ids_beyond_64_bits_are_refused(table):
    table.commit([(1, "a")])
    table.metadata["snapshots"][0]["snapshot-id"] = 2**63
    table.write_metadata()

    with pytest.raises(
        UnsupportedFeatureError, match=r"has 9223372036854775808 as snapshots\[0\].snapshot-id, which is"
    ):
        opened(table)


def test_an_encrypted_manifest_list_is_refused(table):
    table.commit([(1, "a")])
    table.metadata["snapshots"][0]["key-id"] = "1"
    table.write_metadata()

    with pytest.raises(
        UnsupportedFeatureError, match="is encrypted, which is not supported: the keys are not in the table"
    ):
        opened(table)


def test_a_manifest_in_parquet_is_refused_by_name(table):
    table.commit([(1, "a")])
    table.write("metadata/snap-1000001-1.avro", b"PAR1....PAR1")

    with pytest.raises(UnsupportedFeatureError, match="is a manifest in parquet, as in drafts of format version 4"):
        opened(table)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"snapshots": 5}, "snapshots must be a list, found 5"),
        ({"snapshots": [5]}, r"snapshots\[0\] must be an object, found 5"),
        ({"refs": {"main": {"snapshot-id": 7, "type": "branch"}}}, "the ref 'main' names the snapshot 7, which is not"),
        ({"current-snapshot-id": 7, "refs": {}}, "current-snapshot-id is 7, which is not among its snapshots"),
        ({"current-schema-id": 7}, "current-schema-id is 7, which is not among its schemas"),
        ({"location": None}, "location, text, is missing"),
        ({"properties": []}, "properties must be an object of texts"),
        ({"format-version": "2"}, "format-version must be an integer, found '2'"),
        (
            {"snapshot-log": [{"timestamp-ms": "x", "snapshot-id": 1}]},
            r"snapshot-log\[0\].timestamp-ms must be an integer",
        ),
    ],
)
def test_metadata_of_another_shape_names_the_field(table, changed, message):
    table.commit([(1, "a")])
    table.write_metadata(**changed)

    with pytest.raises(CorruptTableError, match=f"metadata/v2.metadata.json is damaged: {message}"):
        opened(table)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\x1f\x8b\x08\x00broken"])
def test_a_metadata_file_that_is_cut_short_is_named(table, content):
    table.commit([(1, "a")])
    table.write("metadata/v1.metadata.json", content)

    with pytest.raises(CorruptTableError, match="metadata/v1.metadata.json"):
        opened(table)


def test_a_bomb_in_a_compressed_metadata_file_ends_in_an_error(table):
    table.commit([(1, "a")])
    table.write("metadata/v1.metadata.json", gzip.compress(b"[" + b" " * (32 << 20)))

    with pytest.raises(LimitError, match="metadata/v1.metadata.json, of .* bytes, has one JSON document of"):
        opened(table, limits=Limits(value_bytes=1 << 20))


def test_more_refs_than_any_table_has_end_in_an_error(table):
    one = table.commit([(1, "a")])
    refs = {f"tag-{number}": {"snapshot-id": one, "type": "tag"} for number in range(100_001)}
    table.write_metadata(refs=refs)

    with pytest.raises(LimitError, match="has 100,001 refs; the limit is 100,000"):
        opened(table)
