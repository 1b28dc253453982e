"""Limits on the memory and time that a metadata file may cost.

A few bytes can decode to many: a parquet dictionary can repeat its longest value in every row, a page of zeros
compresses to a thousandth, and a run of nulls takes no bytes. The decoded size is therefore computed from the headers
of pages and blocks and from lines, before the file is decoded, and compared with the limits.

The defaults are generous: a checkpoint of a million files with statistics has about 100 MB and decodes to about 1 GB.
To raise them, use `open_table(path, limits=Limits(...))`, the option `--limits` of `%snapshot open`, or the option
`limits` of the Spark data source. They also hold on Spark's executors.
"""

from dataclasses import dataclass, fields

from snapshot_explorer.core.errors import InvalidArgumentError, LimitError
from snapshot_explorer.core.hints import Hint, Message

_MOST_TIMES = 16
"""Times a limit that a file may reach by its own size, which its writer chose: holes and archives cost nothing."""
_STORED_TIMES = 4
"""Times `metadata_bytes` that a metadata file may have as it is stored."""
_BYTES_PER_ROW = 8
"""A row of metadata contains a file name, whose random part alone takes 16 bytes, even compressed."""
_MiB = 1 << 20
_DIGITS = 18
"""Digits of a limit in text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits for one metadata file.

    Args:
        metadata_bytes: Decoded bytes that a metadata file may have, however small it is stored.
        metadata_ratio: A larger metadata file may decode to this many times its stored size.
        metadata_rows: Rows that a metadata file may have; a larger file may have one row per 8 bytes.
        value_bytes: Bytes of one line of JSON, one JSON document or answer of a catalog, or one decompressed block of
            Avro.
    """

    metadata_bytes: int = 256 * _MiB
    """Decoded bytes that a metadata file may have, however small it is stored."""
    metadata_ratio: int = 100
    """A larger metadata file may decode to this many times its stored size, but to 16 times `metadata_bytes` at most.
    Real checkpoints and manifests decode to 5 to 30 times."""
    metadata_rows: int = 4_000_000
    """Rows that a metadata file may have, however small it is stored. A larger file may have one row per 8 bytes, but
    16 times this number at most."""
    value_bytes: int = 64 * _MiB
    """Bytes of one line of JSON, one JSON document or answer of a catalog, or one decompressed Avro block. A schema of
    100,000 columns takes 15 MB; Avro writers use blocks of 64 kB."""

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise InvalidArgumentError(f"limits: {field.name} must be a whole number of 1 or more, got {value!r}.")

    def most_bytes(self, size_bytes: int) -> int:
        """Return the maximum number of decoded bytes of a metadata file of this stored size."""
        return max(self.metadata_bytes, min(self.metadata_ratio * size_bytes, _MOST_TIMES * self.metadata_bytes))

    def most_rows(self, size_bytes: int) -> int:
        """Return the maximum number of rows of a metadata file of this stored size."""
        return max(self.metadata_rows, min(size_bytes // _BYTES_PER_ROW, _MOST_TIMES * self.metadata_rows))

    def most_whole_bytes(self, stored_bytes: int | None = None) -> int:
        """Return the maximum number of bytes of a file that is read whole.

        Args:
            stored_bytes: The space that the file takes if it may be less than its size: in an archive, or with holes.
        """
        most = _STORED_TIMES * self.metadata_bytes
        return most if stored_bytes is None else min(most, self.most_bytes(stored_bytes))

    def check_bytes(self, path: str, size_bytes: int, decoded: int) -> None:
        """Check the decoded size of a file."""
        if decoded > self.most_bytes(size_bytes):
            raise limit_error(path, size_bytes, f"decodes to {decoded} bytes or more", "metadata_bytes", decoded, self)

    def check_rows(self, path: str, size_bytes: int, rows: int) -> None:
        """Check the number of rows of a file."""
        if rows > self.most_rows(size_bytes):
            raise limit_error(path, size_bytes, f"claims {rows} rows", "metadata_rows", rows, self)

    def check_value(self, path: str, size_bytes: int, value: int, noun: str) -> None:
        """Check the size of a value, such as a line."""
        if value > self.value_bytes:
            raise limit_error(path, size_bytes, f"has {noun} of {value} bytes or more", "value_bytes", value, self)


def check_limits(limits: object) -> None:
    """Raise InvalidArgumentError if an argument is not Limits."""
    if not isinstance(limits, Limits):
        raise InvalidArgumentError(
            Message(
                "limits must be Limits, such as ",
                Hint("Limits", {"metadata_bytes": 8 << 30}),
                f", got {type(limits).__name__}.",
            )
        )


def parse_limits(text: str) -> Limits:
    """Return limits from text, such as `metadata_bytes=8589934592,metadata_rows=10000000`."""
    names = [field.name for field in fields(Limits)]
    limits: dict[str, int] = {}
    for part in text.split(","):
        name, _, number = (item.strip() for item in part.partition("="))
        if (
            name not in names
            or name in limits
            or not (number.isascii() and number.isdigit() and len(number) <= _DIGITS)
        ):
            raise InvalidArgumentError(
                f"limits must be NAME=NUMBER, separated by commas, got {part.strip()[:80]!r}. Names, each once: "
                f"{', '.join(names)}. Example: {names[0]}=8589934592."
            )
        limits[name] = int(number)
    return Limits(**limits)


def size_error(path: str, size_bytes: int, limit: int) -> LimitError:
    """Return the error for a file that is not read, because of its size as it is stored."""
    return LimitError(
        Message(
            f"{path} has {size_bytes} bytes or more, which are not read whole; the limit is {limit}. It may be "
            "damaged, or crafted to exhaust memory. If the file is valid, raise the limit: ",
            opening_with("metadata_bytes", -(-size_bytes // _STORED_TIMES)),
            ".",
        )
    )


def limit_error(path: str, size_bytes: int, claim: str, name: str, needed: int, limits: Limits) -> LimitError:
    """Return the error for a file that exceeds a limit; it names the file, the limit and how to raise it."""
    limit = {
        "metadata_bytes": limits.most_bytes(size_bytes),
        "metadata_rows": limits.most_rows(size_bytes),
        "value_bytes": limits.value_bytes,
    }[name]
    return LimitError(
        Message(
            f"{path}, of {size_bytes} bytes, {claim}; the limit is {limit}. It may be damaged, or crafted to exhaust "
            "memory. If the file is valid, raise the limit: ",
            opening_with(name, 2 * needed),
            ".",
        )
    )


def opening_with(name: str, limit: int) -> Hint:
    """Return the call that opens the table with a limit of `Limits` raised."""
    return Hint("open_table", {"path": ..., "limits": Hint("Limits", {name: limit})})


DEFAULT = Limits()
"""The default limits."""
