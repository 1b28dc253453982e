"""Footers of parquet files of metadata that pyarrow would end the process for."""

from dataclasses import replace

import pytest

from snapshot_explorer import open_table
from snapshot_explorer.arrow import thrift
from snapshot_explorer.errors import CorruptTableError
from tests.support.delta.table_builder import DeltaTable

CHUNKS, METADATA, CODEC, SIZES, LEVELS = 1, 3, 4, 16, 3
INTEGER_64, TEXT, LIST, STRUCT = 6, 8, 9, 12
BYTE_ARRAY = 6


def test_a_checkpoint_that_counts_levels_which_its_columns_lack_is_refused(tmp_path):
    _checkpointed(tmp_path, _without_a_level)

    with pytest.raises(
        CorruptTableError, match=r"checkpoint.parquet is damaged: the column .* counts \d+ levels of \d+"
    ):
        open_table(tmp_path).current.files()


def test_a_checkpoint_of_an_unknown_codec_is_refused(tmp_path):
    _checkpointed(tmp_path, _with_unknown_codec)

    with pytest.raises(
        CorruptTableError, match=r"checkpoint.parquet is damaged: the column .* is compressed with the unknown codec 9"
    ):
        open_table(tmp_path).current.files()


@pytest.mark.parametrize(
    ("change", "message"),
    [("encrypted", "is encrypted"), ("texts", "counts the bytes of texts, but has none")],
)
def test_a_checkpoint_whose_column_chunks_contradict_its_columns_is_refused(tmp_path, change, message):
    _checkpointed(tmp_path, {"encrypted": _encrypted, "texts": _with_bytes_of_texts}[change])

    with pytest.raises(CorruptTableError, match=f"checkpoint.parquet is damaged: the column .* {message}"):
        open_table(tmp_path).current.files()


def _checkpointed(tmp_path, change):
    """Write a table that is read from a checkpoint whose column chunks were changed in the footer."""
    table = DeltaTable(None, tmp_path)
    table.append([(1, "a")])
    (path,) = table.checkpoint(columns={"add": _with_parsed_statistics()})
    content = table.read(path)
    length = int.from_bytes(content[-8:-4], "little")
    tree = thrift.ThriftReader(content[-8 - length : -8]).struct()
    changed = [change(chunk) for group in thrift.structs(tree, 4) for chunk in thrift.structs(group, CHUNKS)]
    footer = thrift.encode_struct(tree)
    table.write(path, content[: -8 - length] + footer + len(footer).to_bytes(4, "little") + b"PAR1")
    table.clean(table.version + 1)
    assert any(changed)


def _with_parsed_statistics():
    import pyarrow as pa

    from tests.support.delta.table_builder import ACTIONS

    return pa.struct([*ACTIONS["add"], pa.field("stats_parsed", pa.struct({"numRecords": pa.int64()}))])


def _without_a_level(chunk):
    """Take one of the counts of definition levels out of a column chunk; return whether there was one."""
    (metadata,) = (field.value for field in chunk if field.id == METADATA)
    for sizes in (field.value for field in metadata if field.id == SIZES):
        for field in sizes:
            if field.id == LEVELS and len(field.value.values) > 1:
                field.value.values.pop()
                return True
    return False


def _with_unknown_codec(chunk):
    (metadata,) = (field.value for field in chunk if field.id == METADATA)
    for index, field in enumerate(metadata):
        if field.id == CODEC:
            metadata[index] = replace(field, value=9)
            return True
    return False


def _encrypted(chunk):
    chunk.append(
        thrift.Field(8, STRUCT, [thrift.Field(2, STRUCT, [thrift.Field(1, LIST, thrift.ThriftList(TEXT, [b"a"]))])])
    )
    return True


def _with_bytes_of_texts(chunk):
    """Let the size statistics of a chunk of numbers count the bytes of texts; return whether there are any."""
    (metadata,) = (field.value for field in chunk if field.id == METADATA)
    if next(field.value for field in metadata if field.id == 1) == BYTE_ARRAY:
        return False
    sizes = [field.value for field in metadata if field.id == SIZES]
    for statistics in sizes:
        statistics.insert(0, thrift.Field(1, INTEGER_64, 5))
    return bool(sizes)
