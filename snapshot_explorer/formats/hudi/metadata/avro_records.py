"""Records of Avro files in a timeline, as Python values."""

from collections.abc import Mapping
from typing import Any

from snapshot_explorer.core import resources
from snapshot_explorer.core.errors import CorruptTableError
from snapshot_explorer.core.limits import Limits
from snapshot_explorer.formats.avro.container import MAGIC, Container, Shape, read_container
from snapshot_explorer.formats.avro.rows import FOREIGN_ERRORS, records


def is_avro(content: bytes) -> bool:
    """Return whether a file is an Avro file."""
    return content[: len(MAGIC)] == MAGIC


def read_record(content: bytes, path: str, shapes: dict[bytes, Shape], limits: Limits) -> Mapping[str, Any]:
    """Return the only record of an Avro file."""
    return only_record(read_container(content, path, shapes, limits=limits))


def only_record(container: Container) -> Mapping[str, Any]:
    """Return the only record of an Avro file."""
    rows = read_records(container)
    if not rows:
        raise CorruptTableError(
            f"{container.path} contains no record. It is damaged; compare it with a copy of the table."
        )
    return rows[0]


def read_records(container: Container) -> list[Mapping[str, Any]]:
    """Return the records of an Avro file."""
    try:
        return list(records(container))
    except FOREIGN_ERRORS as error:
        resources.check(error, f"{container.path} could not be read")
        raise CorruptTableError(
            f"{container.path} cannot be read as an Avro file: {type(error).__name__}: {error}. It is cut short or "
            "damaged; compare it with a copy of the table."
        ) from error
