"""Usage by column: the bytes that each column has in the live data files, by the footers of the files."""

from collections import Counter
from collections.abc import Mapping
from functools import partial

import pyarrow as pa

from snapshot_explorer.analysis.usage.held_files import Grouped, HeldFiles
from snapshot_explorer.core import frames
from snapshot_explorer.core.errors import ResourceError, SnapshotExplorerError
from snapshot_explorer.core.hints import Message, without_period
from snapshot_explorer.core.progress import step
from snapshot_explorer.core.text import pluralize
from snapshot_explorer.formats.file_checks import CheckedFile, FileCheck, RecordedFile

_AT_ONCE = 512
"""Files whose columns are in memory at the same time."""
_COLUMN, _ONLY_FILES, _REST = _PARTS = ("column", "only in files", "rest of the files")
_NOT_CHECKED = "not checked"
_Part = tuple[str, str | None]
"""What the bytes are, and the name of the column."""


def by_column(held: HeldFiles) -> Grouped:
    """Return USAGE_BY_COLUMN of the newest version, and a sentence on files that were not checked.

    Reads the footer of each live data file, of an ORC file also the footer of each stripe.
    """
    source = held.histories[0].source.with_newest_state(is_newest_state=True)
    version = source.format.version(int(held.plain[-1]) if len(held.plain) else None)
    numbers: Counter[_Part] = Counter({(_COLUMN, name): 0 for name in version.arrow_schema.names})
    sizes: Counter[_Part] = Counter()
    unchecked: list[RecordedFile] = []
    reason = ""
    files = version.files().select(["path", "size_bytes", "rows", "schema_id"])
    names = {item.id: name for name, item in version.field_ids.items()}
    read = partial(_read, source.table_format.maintenance.file_check())
    with step("Reading footers", total=len(files)) as reading:
        for start in range(0, len(files), _AT_ONCE):
            recorded = [RecordedFile(**row) for row in files.slice(start, _AT_ONCE).to_pylist()]
            for file, found in zip(recorded, source.table_format.storage.each(read, recorded), strict=True):
                if found.skip_reason is not None:
                    reason = reason or Message(f"{file.path}: ", without_period(found.skip_reason))
                    unchecked.append(file)
                    continue
                parts = _parts_of(found, names)
                numbers.update(parts.keys())
                sizes.update(parts)
            reading.advance(len(recorded))
    order = sorted(numbers, key=lambda part: (_PARTS.index(part[0]), -sizes[part], part[1] or ""))
    rows = [
        {"what": what, "column": name, "files": numbers[what, name], "size_bytes": sizes[what, name]}
        for what, name in order
    ]
    if unchecked:
        unknown = [file.size_bytes for file in unchecked]
        size_bytes = None if None in unknown else sum(size or 0 for size in unknown)
        rows.append({"what": _NOT_CHECKED, "files": len(unchecked), "size_bytes": size_bytes})
    which = f"The columns of {pluralize(len(unchecked), 'file')} were not checked. The first is "
    return pa.Table.from_pylist(rows, frames.USAGE_BY_COLUMN), [Message(which, reason, ".")] if unchecked else []


def _read(check: FileCheck, file: RecordedFile) -> CheckedFile:
    try:
        return check(file, "columns")
    except ResourceError:
        raise  # the error is not about the file
    except SnapshotExplorerError as error:
        return CheckedFile(skip_reason=error.message)


def _parts_of(file: CheckedFile, names: Mapping[int | str | None, str]) -> Mapping[_Part, int]:
    """Return the parts of a file, each with its size.

    Args:
        names: The columns by their ids, or by their names in files.
    """
    result: Counter[_Part] = Counter()
    for column in file.columns:
        name = names.get(column.id, names.get(column.name))
        result[(_ONLY_FILES, column.name) if name is None else (_COLUMN, name)] += column.size_bytes
    result[_REST, None] = file.size_bytes - result.total()
    return result
