"""How the names of files end that can be compared with a version."""

from typing import Literal

Kind = Literal["parquet", "orc", "avro", "csv", "arrow"]
_ENDINGS: dict[str, Kind] = {
    ".parquet": "parquet",
    ".parq": "parquet",
    ".pq": "parquet",
    ".orc": "orc",
    ".avro": "avro",
    ".csv": "csv",
    ".csv.gz": "csv",
    ".arrow": "arrow",
    ".arrows": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
}
KNOWN_ENDINGS = tuple(_ENDINGS)


def kind_of(name: str) -> Kind | None:
    """Return the format of a file by the end of its name; None if it is not read."""
    return next((kind for ending, kind in _ENDINGS.items() if name.lower().endswith(ending)), None)
