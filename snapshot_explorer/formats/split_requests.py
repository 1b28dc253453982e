"""Checks of what is requested of a split, the same in all formats."""

from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

from snapshot_explorer.core.errors import InvalidArgumentError
from snapshot_explorer.core.records import Split

Detail = TypeVar("Detail")
Field = TypeVar("Field", bound=Any)
"""A column of a format, with a `name`."""


def detail_of(split: Split, kind: type[Detail], title: str) -> Detail:
    """Return the detail of a split of a format.

    Raises:
        InvalidArgumentError: It is a split of another format.
    """
    if not isinstance(split.detail, kind):
        raise InvalidArgumentError(f"The split is not one of a table of {title}. Use a split of the table's own plan.")
    return split.detail


def named_fields(names: Sequence[str], fields: Iterable[Field], hidden: Iterable[Field] = ()) -> list[Field]:
    """Return the columns with these names, in this order; a column of the table rather than a metadata column.

    Args:
        fields: The columns of the table.
        hidden: Its metadata columns, which errors do not list.

    Raises:
        InvalidArgumentError: There is no such column.
    """
    own = {field.name: field for field in fields}
    known = {field.name: field for field in hidden} | own
    for name in names:
        if name not in known:
            raise InvalidArgumentError(f"Unknown column {name!r}. Columns: {', '.join(own)}.")
    return [known[name] for name in names]
