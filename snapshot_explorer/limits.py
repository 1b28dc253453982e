"""How much memory and time a file of metadata may cost: one record holds every limit with its reason.

A few bytes can ask for much: a dictionary of parquet stands for its longest value in every row, a page of zeros packs
to a thousandth, a run of nulls takes no bytes at all. What a file unfolds to is therefore measured from the headers of
its pages and blocks and from its lines, before it is decoded, and compared with what a file of its size can hold.

The limits are generous: a checkpoint of a million files with statistics unfolds to about 1 GB from about 100 MB.
Whoever knows a table raises them: `open_table(path, limits=Limits(...))`. They travel along to Spark's executors.
"""

from dataclasses import dataclass, fields

from snapshot_explorer.errors import InvalidArgumentError, LimitError

_BYTES_PER_ROW = 8
"""A row of metadata names a file: the random part of its name alone takes 16 bytes, whatever packs it."""
_MiB = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one file of metadata may unfold to.

    Raises:
        InvalidArgumentError: A limit is not a whole number of 1 or more.
    """

    metadata_bytes: int = 256 * _MiB
    """Bytes that a metadata file may unfold to, however small it is stored."""
    metadata_ratio: int = 100
    """A larger metadata file may unfold to this many times its stored size. Checkpoints and manifests as they are
    written unfold to 5 to 30 times."""
    metadata_rows: int = 4_000_000
    """Rows that a metadata file may have, however small it is stored. A larger one may have one per 8 bytes."""
    value_bytes: int = 64 * _MiB
    """Bytes of one line of JSON, of one JSON document, and of one unpacked block of Avro. The schema of 100,000 columns
    takes 15 MB; writers of Avro cut blocks at 64 kB."""

    def __post_init__(self) -> None:
        """Refuse what is no limit."""
        for field in fields(self):
            value = getattr(self, field.name)
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise InvalidArgumentError(f"limits: {field.name} must be a whole number of 1 or more, got {value!r}.")

    def most_bytes(self, size_bytes: int) -> int:
        """Return how many bytes a metadata file of this stored size may unfold to."""
        return max(self.metadata_bytes, self.metadata_ratio * size_bytes)

    def most_rows(self, size_bytes: int) -> int:
        """Return how many rows a metadata file of this stored size may have."""
        return max(self.metadata_rows, size_bytes // _BYTES_PER_ROW)

    def check_bytes(self, path: str, size_bytes: int, unfolded: int) -> None:
        """Do nothing if a file may unfold to so many bytes.

        Raises:
            LimitError: It may not.
        """
        if unfolded > self.most_bytes(size_bytes):
            raise exceeded(path, size_bytes, f"unfolds to {unfolded} bytes or more", "metadata_bytes", unfolded, self)

    def check_rows(self, path: str, size_bytes: int, rows: int) -> None:
        """Do nothing if a file may have so many rows.

        Raises:
            LimitError: It may not.
        """
        if rows > self.most_rows(size_bytes):
            raise exceeded(path, size_bytes, f"claims {rows} rows", "metadata_rows", rows, self)

    def check_value(self, path: str, size_bytes: int, value: int, what: str) -> None:
        """Do nothing if a value, such as a line, may have so many bytes.

        Raises:
            LimitError: It may not.
        """
        if value > self.value_bytes:
            raise exceeded(path, size_bytes, f"has {what} of {value} bytes or more", "value_bytes", value, self)


def exceeded(path: str, size_bytes: int, found: str, name: str, needed: int, limits: Limits) -> LimitError:
    """Return the error of a file that asks for more than a limit, which names the file, the limit and the way out."""
    most = {
        "metadata_bytes": limits.most_bytes(size_bytes),
        "metadata_rows": limits.most_rows(size_bytes),
        "value_bytes": limits.value_bytes,
    }[name]
    return LimitError(
        f"{path}, of {size_bytes} bytes, {found}; the limit is {most}. It may be damaged, or made to exhaust memory. "
        f"If the file is right, open the table with limits=Limits({name}={2 * needed})."
    )


DEFAULT = Limits()
"""The limits of a table that is opened without any."""
