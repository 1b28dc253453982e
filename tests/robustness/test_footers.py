"""Footers of parquet files of metadata that pyarrow would end the process for."""

from dataclasses import replace

import pytest

from snapshot_explorer import open_table
from snapshot_explorer.arrow import thrift
from snapshot_explorer.errors import CorruptTableError
from tests.support.delta.table_builder import DeltaTable

CHUNKS, METADATA, CODEC, SIZES, LEVELS = 1, 3, 4, 16, 3


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


def _checkpointed(tmp_path, change):
    """Write a table that is read from a checkpoint whose column chunks were changed in the footer."""
    table = DeltaTable(None, tmp_path)
    table.append([(1, "a")])
    (path,) = table.checkpoint(columns={"add": _with_parsed_statistics()})
    content = table.read(path)
    length = int.from_bytes(content[-8:-4], "little")
    tree = thrift.Reader(content[-8 - length : -8]).struct()
    changed = [change(chunk) for group in thrift.structs(tree, 4) for chunk in thrift.structs(group, CHUNKS)]
    footer = thrift.encoded(tree)
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
