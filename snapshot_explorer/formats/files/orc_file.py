"""ORC files: stripes with the times that ORC's Java reader returns."""

from collections.abc import Callable, Collection, Iterator, Sequence

import pyarrow as pa

from snapshot_explorer.arrow import orc_tail, orc_timestamps
from snapshot_explorer.arrow.corruption import CorruptBytesError
from snapshot_explorer.arrow.positions import batches_without_columns
from snapshot_explorer.core.errors import UnsupportedFeatureError
from snapshot_explorer.storage import load_of

_MAX_WHOLE = 64 * 2**20
"""A stripe of up to this size is fetched whole if all its columns are read."""
_MAX_PARTLY_READ = 2**20
"""Likewise if only some columns are read: the round trips cost more than the bytes."""


class OrcFile:
    """An open ORC file."""

    def __init__(self, source: pa.NativeFile) -> None:
        """Read the tail of a file.

        Raises:
            CorruptBytesError: The types in it would make pyarrow abort the process.
            pyarrow.ArrowException: It is not an ORC file.
        """
        from pyarrow import orc  # noqa: PLC0415 - loaded when the first such file is read: it takes time

        orc_tail.check_types(source)
        self._source = source
        self._open = orc.ORCFile
        self._reader = self._open(source)
        self.schema: pa.Schema = self._reader.schema
        self.rows = int(self._reader.nrows)

    def batches(self, names: Sequence[str], micros: Collection[str] = ()) -> Iterator[pa.RecordBatch]:
        """Yield the stripes in order, with at least these columns; without names, rows without columns.

        Args:
            names: The columns in the file to read.
            micros: Columns whose times may be returned in microseconds, if some of them do not fit nanoseconds.

        Raises:
            pyarrow.ArrowException: A stripe is damaged, a text is not UTF-8, a time does not fit, or the database of
                time zones lacks the writer's.
        """
        if not names:
            yield from batches_without_columns(self.rows)
            return
        # pyarrow parses a dot in a name as a path into a struct: all columns are read then.
        chosen = None if any("." in name for name in names) else list(names)
        load = self._load_of_stripes(chosen)
        for stripe in range(self._reader.nstripes):
            load(stripe)
            try:
                batch = self._stripe(stripe, chosen)
            except pa.ArrowInvalid as error:
                if "out of range" not in str(error) or chosen is None:
                    raise
                batch = self._with_distant_times(stripe, chosen, micros, error)
            else:
                batch = orc_timestamps.as_java_reads(batch, self._source, stripe)
            _check_texts(batch, names)
            yield batch

    def _load_of_stripes(self, names: list[str] | None) -> Callable[[int], None]:
        """Return a function that fetches a stripe of a remote file, and the next stripe ahead.

        It skips large stripes, which are read in ranges. The limit is lower if some columns are left out.
        """
        load = load_of(self._source)
        if load is None:
            return lambda _: None
        try:
            stripes = orc_tail.stripe_ranges(self._source)
        except (CorruptBytesError, UnsupportedFeatureError):
            stripes = []  # the reader raises its own error, or reads LZO
        limit = _MAX_WHOLE if names is None or set(self.schema.names) <= set(names) else _MAX_PARTLY_READ

        def fetch(stripe: int) -> None:
            now, ahead = (
                [(start, end) for start, end in ranges if end - start <= limit]
                for ranges in (stripes[stripe : stripe + 1], stripes[stripe + 1 : stripe + 2])
            )
            load(now, ahead)

        return fetch

    def _stripe(self, stripe: int, names: list[str] | None) -> pa.RecordBatch:
        try:
            orc_tail.check_stripes(self._source)
            orc_timestamps.check_range(self._source, stripe, names)
            return self._reader.read_stripe(stripe, columns=names)
        except pa.ArrowException as error:
            in_utc = orc_tail.in_utc(self._source) if "Time zone file" in str(error) else None
            if in_utc is None:
                raise
            self._reader = self._open(in_utc)
            return self._reader.read_stripe(stripe, columns=names)

    def _with_distant_times(
        self, stripe: int, names: Sequence[str], micros: Collection[str], error: pa.ArrowInvalid
    ) -> pa.RecordBatch:
        """Return a stripe with timestamps that do not fit pyarrow's nanoseconds, in microseconds.

        Raises:
            pyarrow.ArrowInvalid: The error, if it has another reason, or another column causes it.
        """
        columns: dict[str, pa.Array] = {}
        for name in names:
            if name in micros and pa.types.is_timestamp(self.schema.field(name).type):
                times = orc_timestamps.timestamps(self._source, stripe, name)
                if times is None:
                    raise error
                columns[name] = times
        if rest := [name for name in names if name not in columns]:
            batch = self._stripe(stripe, rest)
            columns |= {name: batch.column(name) for name in rest}
        return pa.RecordBatch.from_arrays([columns[name] for name in names], names=list(names))


def _check_texts(batch: pa.RecordBatch, names: Sequence[str]) -> None:
    """Check that texts are UTF-8, which the ORC reader does not."""
    for name in names:
        if _has_text(batch.schema.field(name).type):
            try:
                batch.column(name).validate(full=True)
            except pa.ArrowInvalid as error:
                raise pa.ArrowInvalid(f"the column {name!r} is not valid text: {error}") from error


def _has_text(dtype: pa.DataType) -> bool:
    if pa.types.is_map(dtype):
        return _has_text(dtype.key_type) or _has_text(dtype.item_type)
    if pa.types.is_struct(dtype):
        return any(_has_text(field.type) for field in dtype)
    return pa.types.is_string(dtype) or (pa.types.is_list(dtype) and _has_text(dtype.value_type))
