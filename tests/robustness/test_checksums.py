"""Pages that carry a checksum are verified: a bit that flipped on a disk is no value."""

import io

import pyarrow.parquet as pq
import pytest

from snapshot_explorer import open_table
from snapshot_explorer.errors import CorruptTableError
from tests.support.delta.table_builder import DeltaTable
from tests.support.paimon.table_builder import PaimonTable

VALUE = b"a value to be found"


def flipped(content, value, **options):
    """Return a parquet file written anew with checksums of its pages, and then a bit of a value flipped."""
    out = io.BytesIO()
    options |= {"compression": "none", "use_dictionary": False, "write_statistics": False}
    pq.write_table(pq.read_table(io.BytesIO(content)), out, write_page_checksum=True, **options)
    written = out.getvalue()
    at = written.index(value) + 2
    return written[:at] + bytes([written[at] ^ 1]) + written[at + 1 :]


@pytest.mark.parametrize(
    "options", [{}, {"data_page_version": "2.0"}], ids=["pages of version 1", "pages of version 2"]
)
def test_a_bit_flipped_in_a_page_of_a_delta_table_is_refused(tmp_path, options):
    table = DeltaTable(None, tmp_path)
    action = table.data("part-0.parquet", [(1, VALUE.decode())])
    table.write("part-0.parquet", flipped(table.read("part-0.parquet"), VALUE, **options))
    action["add"]["size"] = table.sizes["part-0.parquet"]
    table.commit(action)

    opened = open_table(tmp_path)

    assert opened.current.to_arrow(columns=["id"]).num_rows == 1
    with pytest.raises(CorruptTableError, match="part-0.parquet .*CRC"):
        opened.current.to_arrow()


def test_a_bit_flipped_in_a_page_of_a_paimon_table_is_refused(memory_root):
    table = PaimonTable(*memory_root)
    rows = [(1, VALUE.decode())]
    table.commit(rows, content=flipped(table.parquet(rows), VALUE))

    with pytest.raises(CorruptTableError, match="data-.*parquet .*CRC"):
        open_table(f"memory://{table.root}").current.to_arrow()


def test_a_bit_flipped_in_a_page_of_a_checkpoint_is_refused(tmp_path):
    table = DeltaTable(None, tmp_path)
    table.append([(1, "a")], name=f"{VALUE.decode().replace(' ', '-')}.parquet")
    (path,) = table.checkpoint()
    content = table.read(path)
    table.clean(table.version + 1)
    table.write(path, flipped(content, VALUE.replace(b" ", b"-")))

    with pytest.raises(CorruptTableError, match="checkpoint.parquet .*CRC"):
        open_table(tmp_path).current.files()
