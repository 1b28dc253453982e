"""Problems of older libraries: the oldest allowed versions, and cases in which allowed versions need a workaround.

A case names a library, the version that fixes the problem, and code that reproduces it. Code that depends on a case
calls `case.applies()`; no other module compares versions. When a floor in `pyproject.toml` reaches `fixed_in`, delete
the case and the code that depends on it. `tests/package/test_old_libraries.py` runs every reproduction.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from typing import TYPE_CHECKING

from snapshot_explorer.core.errors import MissingDependencyError

if TYPE_CHECKING:
    from collections.abc import Mapping

FLOORS = {
    "anywidget": "0.9",
    "duckdb": "1.1",
    "fastavro": "1.9",
    "fsspec": "2023.5",
    "ipywidgets": "7.7",
    "numpy": "1.26",
    "orjson": "3.10",
    "pandas": "2.1",
    "plotly": "5.22",
    "pyarrow": "18.0",
}
"""The oldest version of each required library, as in `pyproject.toml`."""
SPARK_FLOORS = {"pyspark": "3.5"}
"""The oldest versions of the libraries that Spark needs, as in the extra `spark`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OldLibraryCase:
    """A problem of allowed versions of a library."""

    library: str
    """The library, by its name on the package index."""
    fixed_in: str
    """The first version without the problem."""
    since: str = "0"
    """The first version with the problem."""
    problem: str
    """The behavior of older versions, and the workaround of this package."""
    reproduction: str
    """Python code that fails, or ends the process, with older versions."""

    def applies(self) -> bool:
        """Return whether the installed version has the problem."""
        version = installed_version(self.library)
        return is_older(version, self.fixed_in) and not is_older(version, self.since)

    def remedy(self) -> str:
        """Return a sentence for a message: the installed version, and the command that installs a working one."""
        return (
            f"{self.library} {installed_version(self.library)} is too old for it. "
            f"Run: pip install '{self.library}>={self.fixed_in}'"
        )


DUCKDB_LOCAL_ERRORS_AS_JSON = OldLibraryCase(
    library="duckdb",
    fixed_in="1.5",
    problem="The setting errors_as_json belongs to a connection and not to an instance. Every connection has an "
    "instance of its own, which opens more slowly than a connection.",
    reproduction="import duckdb; duckdb.connect(config={'errors_as_json': 'true'})",
)
DUCKDB_ALLOWED_PATHS = OldLibraryCase(
    library="duckdb",
    fixed_in="1.2",
    problem="There is no setting allowed_paths, so a query of a user cannot be limited to some files. SQL reads the "
    "files with PyArrow.",
    reproduction="import duckdb; duckdb.connect().execute(\"SET allowed_paths = ['/tmp/a.parquet']\")",
)
DUCKDB_ARROW_FILTERS = OldLibraryCase(
    library="duckdb",
    fixed_in="2.0",
    problem="PyArrow applies the filters of a query on Arrow data, and there NaN is not greater than all numbers. "
    "Views of Arrow data compute their columns, so that DuckDB applies the filters.",
    reproduction="import duckdb, pyarrow; t = pyarrow.table({'x': [float('nan')]}); "
    "assert duckdb.sql('SELECT * FROM t WHERE x > 1').fetchall()",
)
DUCKDB_ROW_ORDER = OldLibraryCase(
    library="duckdb",
    fixed_in="1.3",
    problem="A condition with OR returns rows in another order than the file. Conditions over files are computed as a "
    "value, so that no row group is skipped.",
    reproduction="import duckdb, pyarrow; t = pyarrow.table({'x': [1, 2, 3]}); "
    "assert duckdb.sql('SELECT x FROM t WHERE x > 2 OR x < 2').fetchall() == [(1,), (3,)]",
)
DUCKDB_DOUBLE_CONSTANTS = OldLibraryCase(
    library="duckdb",
    fixed_in="2.0",
    problem="A constant of type DOUBLE in a parse tree is printed as a DECIMAL, such as 1.0 for 1e0, which compares "
    "differently. Expressions with one are not printed: they skip no files.",
    reproduction="import duckdb; "
    "tree = duckdb.execute(\"SELECT json_serialize_sql('SELECT 1e0'::VARCHAR)\").fetchall()[0][0]; "
    "text = duckdb.execute('SELECT json_deserialize_sql(?::VARCHAR)', [tree]).fetchall()[0][0]; "
    "assert text == 'SELECT 1e0', text",
)
DUCKDB_NANOSECONDS = OldLibraryCase(
    library="duckdb",
    fixed_in="2.0",
    problem="Timestamps with a zone and times lose their nanoseconds. Conditions and SQL refuse such columns.",
    reproduction="import duckdb, pyarrow; "
    "t = pyarrow.table({'x': pyarrow.array([1], pyarrow.timestamp('ns', 'UTC'))}); "
    "assert str(duckdb.sql('FROM t').types[0]) == 'TIMESTAMPTZ_NS'",
)
DUCKDB_PIVOT = OldLibraryCase(
    library="duckdb",
    fixed_in="1.1.3",
    problem="PIVOT of Arrow data never ends. SQL refuses it.",
    reproduction="import duckdb, faulthandler, pyarrow; faulthandler.dump_traceback_later(30, exit=True); "
    "t = pyarrow.table({'x': ['a']}); "
    "[duckdb.sql('PIVOT t ON x USING count(*)').fetchall() for _ in range(200)]",
)
NUMPY_ISIN = OldLibraryCase(
    library="numpy",
    since="2.0",
    fixed_in="2.0.1",
    problem="isin fails on unsigned numbers from 2**63 on, unless it sorts. Hashes are looked up by sorting, in every "
    "version.",
    reproduction="import numpy as np; hashes = np.array([2**63], np.uint64); np.isin(hashes, hashes)",
)
PYARROW_CHUNKS = OldLibraryCase(
    library="pyarrow",
    fixed_in="23.0",
    problem="Functions of several columns, such as coalesce and equal, lose nulls and return wrong values where the "
    "chunks of one column begin in the middle of those of another. Columns are combined into one chunk before.",
    reproduction="import pyarrow, pyarrow.compute as pc; "
    "assert pc.coalesce(pyarrow.array([1, None]), pyarrow.chunked_array([[2], [2]])).to_pylist() == [1, 2]",
)
PYARROW_CSV_CHUNKS = OldLibraryCase(
    library="pyarrow",
    fixed_in="24.0",
    problem="write_csv writes the rows before an empty chunk again. Chunks are combined before, in every version.",
    reproduction="import io, pyarrow, pyarrow.csv; out = io.BytesIO(); "
    "pyarrow.csv.write_csv(pyarrow.table({'x': pyarrow.chunked_array([[1], [], [2]], pyarrow.int8())}), out); "
    "assert out.getvalue() == b'\"x\"\\n1\\n2\\n', out.getvalue()",
)
PYARROW_IF_ELSE = OldLibraryCase(
    library="pyarrow",
    fixed_in="24.0",
    problem="if_else of a null and a slice of text returns wrong text. Slices are copied before.",
    reproduction="import pyarrow, pyarrow.compute as pc; text = pyarrow.array(['aa', 'b', 'c']).slice(1); "
    "chosen = pc.if_else(pyarrow.array([True, False]), pyarrow.scalar(None, pyarrow.string()), text); "
    "chosen.validate(full=True); assert chosen.to_pylist() == [None, 'c']",
)
PYARROW_MAP_KEYS = OldLibraryCase(
    library="pyarrow",
    fixed_in="26.0",
    problem="Combining chunks of maps whose keys were cast ends the process, unless the nulls of the keys were "
    "counted. They are, in every version.",
    reproduction="import pyarrow; maps = pyarrow.array([[(1, 1)]], pyarrow.map_(pyarrow.int16(), pyarrow.int8())); "
    "cast = maps.cast(pyarrow.map_(pyarrow.int32(), pyarrow.int8())); pyarrow.concat_arrays([cast, cast])",
)
PYARROW_MAPS_AS_DICTS = OldLibraryCase(
    library="pyarrow",
    fixed_in="20.0",
    problem="to_pylist cannot return maps as dicts. Python code converts them, more slowly.",
    reproduction="import pyarrow; pyarrow.array([[(1, 2)]], pyarrow.map_(pyarrow.int8(), pyarrow.int8()))"
    ".to_pylist(maps_as_pydicts='strict')",
)
PYARROW_VARIANTS = OldLibraryCase(
    library="pyarrow",
    fixed_in="22.0",
    problem="Files with a column of the parquet type VARIANT cannot be opened. They are refused.",
    reproduction="import pyarrow, pyarrow.parquet as pq; "
    "footer = bytes.fromhex('1502194c4804726f6f74150200350218017615045c0c2000000015"
    "0c250018086d6574616461746100150c2500180576616c7565001600190c00'); "
    "pq.read_metadata(pyarrow.BufferReader(b'PAR1' + footer + len(footer).to_bytes(4, 'little') + b'PAR1'))",
)
PYARROW_VECTORS = OldLibraryCase(
    library="pyarrow",
    fixed_in="26.0",
    problem="Null lists of a fixed length cannot be read from parquet files. They are read as lists of any length, "
    "without the Arrow schema in the file.",
    reproduction="import io, pyarrow, pyarrow.parquet as pq; out = io.BytesIO(); "
    "pq.write_table(pyarrow.table({'x': pyarrow.array([[1], None], pyarrow.list_(pyarrow.int8(), 1))}), out); "
    "pq.read_table(pyarrow.BufferReader(out.getvalue()))",
)
PYARROW_NO_ROW_GROUPS = OldLibraryCase(
    library="pyarrow",
    since="18.0",
    fixed_in="19.0",
    problem="Reading no row group of a parquet file fails. Such files are not read, in every version.",
    reproduction="import io, pyarrow, pyarrow.parquet as pq; out = io.BytesIO(); "
    "pq.ParquetWriter(out, pyarrow.schema([('x', pyarrow.int8())])).close(); "
    "pq.ParquetFile(pyarrow.BufferReader(out.getvalue())).read()",
)
PYARROW_ORC_STRIPES = OldLibraryCase(
    library="pyarrow",
    fixed_in="19.0",
    problem="A damaged ORC file, or one with a time zone that is not in the database, ends the process. Zones are "
    "looked up and the footers of stripes parsed before; other damage still ends it.",
    reproduction="import io, pyarrow; from pyarrow import orc; out = io.BytesIO(); "
    "t = pyarrow.table({'t': pyarrow.array([1], pyarrow.timestamp('us'))}); "
    "orc.write_table(t, out, compression='uncompressed'); "
    "file = orc.ORCFile(pyarrow.BufferReader(out.getvalue().replace(b'GMT', b'XYZ')))\n"
    "try:\n    file.read_stripe(0)\nexcept pyarrow.ArrowException:\n    pass",
)
PYSPARK_ARROW = OldLibraryCase(
    library="pyspark",
    fixed_in="4.0",
    problem="createDataFrame does not accept Arrow data, and groups of rows are not processed as Arrow. Files with "
    "deletion vectors are read by the format's reader, and row diffs on Spark are refused.",
    reproduction="from pyspark.sql import GroupedData; GroupedData.applyInArrow",
)
PYSPARK_COLLATIONS = OldLibraryCase(
    library="pyspark",
    fixed_in="4.0",
    problem="There are no collations. Columns with one are refused.",
    reproduction="from pyspark.sql.functions import collate",
)
PYSPARK_DATA_SOURCES = OldLibraryCase(
    library="pyspark",
    fixed_in="4.0",
    problem="There are no data sources in Python. SnapshotDataSource is refused.",
    reproduction="from pyspark.sql import datasource",
)
PYSPARK_READ_LIMITS = OldLibraryCase(
    library="pyspark",
    fixed_in="4.2",
    problem="Streams of data sources in Python have no limits. The option maxVersionsPerTrigger is refused.",
    reproduction="from pyspark.sql.streaming.datasource import ReadLimit",
)
PYSPARK_QUERY_CONTEXT = OldLibraryCase(
    library="pyspark",
    fixed_in="4.0",
    problem="Errors have their position in the query only in their text, which is parsed.",
    reproduction="from pyspark.errors import PySparkException; PySparkException.getQueryContext",
)
PYSPARK_THREADS = OldLibraryCase(
    library="pyspark",
    fixed_in="4.0",
    problem="inheritable_thread_target accepts no session, only the function of the thread.",
    reproduction="import inspect; from pyspark.util import inheritable_thread_target; "
    "assert 'SparkSession' in str(inspect.signature(inheritable_thread_target))",
)
PYSPARK_VARIANTS = OldLibraryCase(
    library="pyspark",
    fixed_in="4.0",
    problem="There is no type for variants. Columns with them are refused.",
    reproduction="from pyspark.sql.types import VariantType",
)
PYARROW_ORC_TIMES = OldLibraryCase(
    library="pyarrow",
    fixed_in="25.0",
    problem="Times in ORC files before 1677 and after 2262 become other times. The seconds of all times are decoded "
    "and checked before; times that do not fit are decoded here, or refused.",
    reproduction="import io, pyarrow; from pyarrow import orc; out = io.BytesIO(); "
    "t = pyarrow.table({'t': pyarrow.array([-62135596800], pyarrow.timestamp('s')).cast(pyarrow.timestamp('us'))}); "
    "orc.write_table(t, out); file = orc.ORCFile(pyarrow.BufferReader(out.getvalue()))\n"
    "try:\n    file.read_stripe(0)\nexcept pyarrow.ArrowInvalid:\n    pass\nelse:\n    raise ValueError",
)
PYARROW_STRUCT_FIELDS = OldLibraryCase(
    library="pyarrow",
    fixed_in="19.0",
    problem="Structs are not cast to structs with more fields. Records within lists of a manifest are rebuilt field by "
    "field, in every version.",
    reproduction="import pyarrow; pyarrow.array([{'a': 1}]).cast(pyarrow.struct({'a': pyarrow.int64(), 'b': "
    "pyarrow.int8()}))",
)
CASES = tuple(value for value in list(globals().values()) if isinstance(value, OldLibraryCase))
"""All cases."""


def check_floors(floors: Mapping[str, str] = FLOORS) -> None:
    """Raise an error that names each installed library that is older than its floor."""
    old = {name: version for name in floors if is_older(version := installed_version(name), floors[name])}
    if old:
        named = " and ".join(f"{name} {version} is older than {floors[name]}" for name, version in old.items())
        command = " ".join(f"'{name}>={floors[name]}'" for name in old)
        raise MissingDependencyError(
            f"snapshot_explorer does not work with this environment: {named}. Run: pip install {command}"
        )


@cache
def installed_version(name: str) -> str | None:
    """Return the installed version; None for a library without metadata, which imports report if it is missing."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def is_older(version: str | None, floor: str) -> bool:
    """Return whether a version precedes another one; False for a library that is not installed."""
    return version is not None and _release(version) < _release(floor)


@cache
def _release(version: str) -> tuple[int, ...]:
    """Return the numbers of a version without zeros at the end, so that 18.1 equals 18.1.0."""
    match = re.match(r"\d+(?:\.\d+)*", version)
    numbers = [int(number) for number in match[0].split(".")] if match else []
    while numbers and not numbers[-1]:
        numbers.pop()
    return tuple(numbers)
