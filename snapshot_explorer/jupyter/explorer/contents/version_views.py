"""Views of a version and of all versions: a commit, files, branches, health. Drawings; no widget."""

from dataclasses import replace
from typing import Any

import pyarrow as pa

from snapshot_explorer.analysis.health.symptoms import readability_symptom
from snapshot_explorer.analysis.retention import read_readability
from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.arrow.value_text import format_cell, truncate, unit_of
from snapshot_explorer.core.errors import InvalidArgumentError
from snapshot_explorer.core.safe_text import sanitize
from snapshot_explorer.history import history_of
from snapshot_explorer.history.commits import commit_of
from snapshot_explorer.jupyter.explorer.contents.commit_list import commit_rows
from snapshot_explorer.jupyter.explorer.contents.grid_rows import grid_rows
from snapshot_explorer.jupyter.explorer.contents.view_requests import DRAWN, SnapshotCache, ViewRequest, ViewResult
from snapshot_explorer.jupyter.explorer.state import READS
from snapshot_explorer.jupyter.zones import local_text
from snapshot_explorer.view import Drawing, Grid, Line, Pairs, Part, drawing_of, picture_of
from snapshot_explorer.view.records.frames import drawn_rows
from snapshot_explorer.view.records.health import problem_count
from snapshot_explorer.view.tracks.branch_graph import branch_graph
from snapshot_explorer.view.tracks.file_lifetimes import file_tracks, partition_heat
from snapshot_explorer.view.tracks.svg import heat_svg, svg_of, tracks_svg

_NAMES = {"actions": "Actions", "slices": "File groups"}
"""The titles of the pictures of metadata tables."""
_SIGNS = ("ran", "versions")
"""Their columns that draw the picture's content as signs."""
_IN_HEADLINE = ("kind", "operation", "user")
_SOURCES = {
    "writer": "the writer",
    "metadata": "metadata",
    "rows": "reading the rows",
    "net": "the rows in files: the net change",
    "contradicted": "nothing: the writer and the files disagree",
}
"""The sources of the counts of changed rows, in words."""
_LONGEST_FACT = 300
_MOST_VALUES = 24
"""The maximum number of columns whose statistics are shown."""


def commit(cache: SnapshotCache, request: ViewRequest) -> ViewResult:
    """Return the commit of B, and the details that its writer stored. Reads only metadata that is not cached.

    If its rows are to be counted, reads the rows that differ.
    """
    version, rows = request["b"], request.commit
    notes: tuple[str, ...] = ()
    is_counted = request["rows_counted"] == version
    if is_counted or rows is None or not len(rows):
        frame = cache.table.history(f"{version}..{version}", exact=is_counted)
        rows, notes = frame.to_arrow(), frame.notes if is_counted else ()
    can_count = not is_counted and rows["rows_inserted"][0].as_py() is None and rows["kind"][0].as_py() is not None
    record = commit_of(rows)
    _, known, *stored = drawing_of(record).parts
    local = local_text(record.committed_at, request["zone"]) if record.committed_at else ""
    facts = (*([("local time", local)] if local else []), *(known.rows if isinstance(known, Pairs) else ()))
    return ViewResult(
        drawing=Drawing(title=f"Version {version}", parts=(Pairs((("version", version), *facts)), *stored)),
        headline={
            **commit_rows(rows, 0, "rows")["rows"][0],
            "facts": _facts(dict(facts)),
            "notes": [*map(sanitize, notes)],
            "canCount": can_count,
        },
        code=f"{request.name}.at({version}).commit",
        source=cache.cited(version),
    )


def _facts(values: dict[str, Any]) -> list[list[str]]:
    """Return the facts of a commit beside its headline, as names and texts; additions and removals share a line."""
    facts = []
    for unit in ("rows", "files", "bytes"):
        sides = [values.get(f"{side}_{unit}") for side in ("added", "removed")]
        texts = ["?" if count is None else format_cell(count, unit_of(unit)).text for count in sides]
        signed = [
            f"{sign}{text}" for sign, text, count in zip("+\N{MINUS SIGN}", texts, sides, strict=True) if count != 0
        ]
        if any(sides):
            facts.append(["rows in files" if unit == "rows" else unit, " ".join(signed)])
    for name, value in values.items():
        if name == "rows_source":
            facts.append(["counts from", _SOURCES[value]])
        elif name not in _IN_HEADLINE and not name.startswith(("added_", "removed_")):
            shown = format_cell(value, unit_of(name))
            facts.append([name.replace("_", " "), truncate(shown.text, _LONGEST_FACT)])
    return facts


def files(cache: SnapshotCache, request: ViewRequest) -> ViewResult:
    """Return the live files of B, the lifetimes of all files, changes of partitions, usage, or a format's picture."""
    match request["file_view"]:
        case "list":
            return _live_files(cache, request)
        case "lifetimes":
            return _lifetimes(cache, request)
        case "partitions":
            return _partitions(cache, request)
        case "usage":
            return _usage(cache, request)
        case view:
            return _metadata_picture(cache, request, view)


def _live_files(cache: SnapshotCache, request: ViewRequest) -> ViewResult:
    """Return the live files of B; with the statistics of their columns if requested."""
    version, text, wide = (request[name] for name in ("b", "partition", "statistics"))
    frame = cache.at(version).files(statistics=wide)
    rows = frame.to_arrow()
    kept = rows
    if text:
        kept = rows.filter(pc.match_substring(_partition_texts(rows["partition"]), text, ignore_case=True))
    drawn = kept.select([name for name in rows.column_names if rows[name].null_count < len(rows) and name != "version"])
    partitioned = bool(cache.at(version).schema.partition_keys)
    drawn = drawn if partitioned or "partition" not in drawn.column_names else drawn.drop_columns(["partition"])
    notes = [Line(f"{len(kept):,} of {len(rows):,} files are in partitions that hold {text!r}.")] if text else []
    drawn, cut_off = _fewer_values(drawn)
    notes += [Line(cut_off)] if cut_off else []
    code = f"{request.name}.at({version}).files({'statistics=True' if wide else ''})"
    return ViewResult(
        drawing=Drawing(
            title=f"Files of version {version}",
            parts=(*notes, Grid(drawn, noun="files", limit=DRAWN)),
        ),
        code=code + (_partition_code(text) if text else ""),
        source=cache.cited(version),
        grid=grid_rows(drawn, noun="files"),
    )


def _partition_code(text: str) -> str:
    """Return the code that keeps the files of partitions that contain a text, to append to the code for all."""
    spelled = '"/".join(f"{key}={value}" for key, value in one.items())'
    code = f".to_pandas().assign(partition=lambda files: [{spelled} for one in files.partition])"
    return f"{code}.loc[lambda files: files.partition.str.contains({text!r}, case=False, regex=False)]"


def _fewer_values(rows: pa.Table) -> tuple[pa.Table, str]:
    """Return statistics of the first columns only, and a note on the others."""
    most = 0
    for at, field in enumerate(rows.schema):
        if pa.types.is_struct(field.type) and field.type.num_fields > _MOST_VALUES:
            most = max(most, field.type.num_fields)
            array = rows.column(at).combine_chunks()
            shown = pa.StructArray.from_arrays(
                [array.field(index) for index in range(_MOST_VALUES)],
                fields=[field.type.field(index) for index in range(_MOST_VALUES)],
                mask=array.is_null(),
            )
            rows = rows.set_column(at, pa.field(field.name, shown.type, metadata=field.metadata), shown)
    return rows, f"Values of {_MOST_VALUES} of {most:,} columns are shown." if most else ""


def _partition_texts(partitions: pa.ChunkedArray) -> pa.Array:
    """Return partitions as text, such as dt=2026-01-01/hr=3; each distinct one is formatted once."""
    array = partitions.combine_chunks()
    if not len(array):
        return pa.array([], pa.string())
    known: dict[Any, str] = {}
    keys = [None if item is None else tuple(item) for item in array.to_pylist()]
    for key in keys:
        if key not in known:
            known[key] = "/".join(f"{name}={value}" for name, value in key or ())
    return pa.array([known[key] for key in keys], pa.string())


def _metadata_picture(cache: SnapshotCache, request: ViewRequest, view: str) -> ViewResult:
    """Return the picture of a metadata table that few formats have, such as actions over time."""
    name = next((item.name for item in history_of(cache.table).table_format.inspections if item.picture == view), None)
    if name is None:
        raise InvalidArgumentError(f"{cache.table.name} has no picture of {view}: its format records none.")
    frame = cache.table.inspect(name)
    drawing = picture_of(frame).drawing
    return ViewResult(
        drawing=replace(drawing, parts=tuple(map(_without_signs, drawing.parts))),
        answer=f"{_NAMES[view]} of {cache.table.name}",
        code=f"{request.name}.inspect({name!r}).picture()",
        source=cache.cited(cache.table.current.version),
        picture=svg_of(frame),
    )


def _without_signs(part: Part) -> Part:
    """Return a table without the column that repeats the picture in signs; another part unchanged."""
    if not isinstance(part, Grid):
        return part
    return replace(part, rows=part.rows.select([name for name in part.rows.column_names if name not in _SIGNS]))


def _lifetimes(cache: SnapshotCache, request: ViewRequest) -> ViewResult:
    table = cache.table
    if request["missing"]:
        read_readability(history_of(table))
    lifetimes = table.lifetimes()
    tracks = file_tracks(lifetimes)
    return ViewResult(
        drawing=Drawing(title=lifetimes.title, parts=tuple(map(Line, tracks.notes[1:]))),
        answer=". ".join([f"{tracks.total:,} files over {len(lifetimes.versions):,} versions", *tracks.notes[:1]]),
        code=f"{request.name}.lifetimes().picture('files')",
        source=cache.cited(*lifetimes.versions[:1], *lifetimes.versions[-1:]),
        picture=tracks_svg(tracks),
    )


def _partitions(cache: SnapshotCache, request: ViewRequest) -> ViewResult:
    lifetimes, y = cache.table.lifetimes(), request["measure"]
    heat = partition_heat(lifetimes, y)
    return ViewResult(
        drawing=Drawing(title=lifetimes.title, parts=()),
        answer=f"What {len(lifetimes.versions):,} versions changed, by partition: {heat.what}",
        code=f"{request.name}.lifetimes().picture('partitions', y={y!r})",
        source=cache.cited(*lifetimes.versions[:1], *lifetimes.versions[-1:]),
        picture=heat_svg(heat),
    )


def _usage(cache: SnapshotCache, request: ViewRequest) -> ViewResult:
    """Return what holds the bytes of the table now, and live and held bytes at each version."""
    usage = cache.table.usage("time")
    drawing = drawing_of(usage)
    return ViewResult(
        drawing=replace(drawing, parts=drawing.parts[1:]),  # the first is the answer
        answer=usage.verdict,
        code=f"{request.name}.usage('time')",
        source=cache.cited(usage.version),
    )


def branches(cache: SnapshotCache, request: ViewRequest) -> ViewResult:
    """Return the branches and tags of the table as a graph, and as tables."""
    table = cache.table
    graph, frames = branch_graph(history_of(table)), (table.branches(), table.tags())
    grids: list[Part] = [Grid(drawn_rows(frame), noun=frame.noun) for frame in frames if len(frame)]
    return ViewResult(
        drawing=Drawing(title=graph.title, parts=(*map(Line, graph.notes), *grids)),
        code=f"{request.name}.branches().picture()",
        source=cache.cited(*history_of(cache.table).listing.versions[-1:]),
        picture=tracks_svg(graph),
    )


def health(cache: SnapshotCache, request: ViewRequest) -> ViewResult:
    """Return the health of B, the versions that can be loaded, or the effect of a retention rule."""
    match request["health"]:
        case "problems":
            found = cache.table.health()
            return ViewResult(
                drawing=drawing_of(found),
                answer=problem_count(found),
                findings=found.symptoms,
                code=f"{request.name}.health()",
                source=cache.cited(cache.table.current.version),
            )
        case "readability":
            return _readability(cache, request)
        case "retention":
            return _retention(cache, request)
        case "verify" | "orphans" | "duplicates":
            return _files_read(cache, request)
        case _:
            result = cache.health(request["b"])
            return ViewResult(
                drawing=drawing_of(result),
                code=f"{request.name}.health({request['b']}, metadata_only=True)",
                source=cache.cited(request["b"]),
            )


def _files_read(cache: SnapshotCache, request: ViewRequest) -> ViewResult:
    """Return the result of verifying files, or of looking for orphans or duplicates; before a click, a description."""
    part = request["health"]
    call_key = tuple(request[name] for name in READS[part])
    requested = request["files_read"].get(part, (None,))
    if requested[0] != call_key:
        title, line = _FILE_READS[call_key[0] if part == "verify" else part]
        result, drawing = None, Drawing(title=title, parts=(Line(line),))
    else:
        result = cache.files_read(part, *requested)
        drawing = drawing_of(result)
    grids = [part for part in drawing.parts if isinstance(part, Grid)]
    call = f"{part}({call_key[0]!r})"
    if part == "duplicates":
        call = f"at({call_key[0]}).duplicates({list(call_key[1]) or ''})"
    return ViewResult(
        drawing=drawing,
        code=f"{request.name}.{call}",
        source=cache.cited(call_key[0] if part == "duplicates" else cache.table.current.version),
        grid=grid_rows(grids[0].rows, noun=grids[0].noun) if grids else None,
    )


_FILE_READS = {
    "existence": (
        "Do all files exist?",
        "Lists the folders of the table, and compares the sizes of the data files that any version needs. Opens none.",
    ),
    "footers": (
        "Do all files have the recorded rows?",
        "Lists the folders of the table, and reads the footer of every data file that any version needs.",
    ),
    "bytes": (
        "Can all files be read as a whole?",
        "Reads every data file that any version needs as a whole, once, with the checksums of its pages.",
    ),
    "orphans": (
        "Which files does no version, tag or branch name?",
        "Lists the folders of the table, and reads all metadata. Deletes nothing, and shows the engine's own command.",
    ),
    "duplicates": (
        "Which rows of B are there more than once?",
        "Reads the columns of the key of all rows of B; without a key, those of the primary key, or all columns.",
    ),
}
"""For each reading of files its question, and the files and columns that it reads."""


def _readability(cache: SnapshotCache, request: ViewRequest) -> ViewResult:
    """Return which versions can be loaded, and each version with its details."""
    readability = read_readability(history_of(cache.table))  # the history looks for few files
    rows = readability.to_arrow()
    return ViewResult(
        drawing=Drawing(title=f"What of {cache.table.name} can be read", parts=(Grid(rows, noun="versions"),)),
        answer=readability_symptom(rows, readability.notes).sentence,
        code=f"{request.name}.verify().versions",
        source=cache.cited(cache.table.current.version),
        grid=grid_rows(rows, noun="versions"),
    )


def _retention(cache: SnapshotCache, request: ViewRequest) -> ViewResult:
    """Return the effect of a retention rule; nothing is deleted."""
    keep, keep_last = request["keep"], request["keep_last"] or None
    of_last = f", keep_last={keep_last}" if keep_last else ""
    return ViewResult(
        drawing=drawing_of(cache.table.retention(keep=keep, keep_last=keep_last)),
        code=f"{request.name}.retention(keep={keep!r}{of_last})",
        source=cache.cited(cache.table.current.version),
    )
