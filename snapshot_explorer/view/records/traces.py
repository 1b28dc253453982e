"""What is drawn of a trace: the verdict, the evidence, and what was not examined."""

import pyarrow as pa

from snapshot_explorer.analysis.rows import METADATA, MISSING, READ, UNREADABLE_FILE, Trace, drawn_columns
from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.core.text import format_utc
from snapshot_explorer.lake import LakeTrace
from snapshot_explorer.results import Frame
from snapshot_explorer.view.dispatch import draw, drawing_of
from snapshot_explorer.view.drawing import Code, Drawing, Line, Pairs, Part

_EXPLAINED = 50
"""The maximum number of tables whose open questions are written out; the frame has all."""
_WORDS = {READ: "read", METADATA: "ruled out by metadata", MISSING: "missing", UNREADABLE_FILE: "unreadable"}


@draw.register
def _result(result: Trace) -> Drawing:
    """Return the result as a drawing: the verdict, the evidence, and what was not examined."""
    files = result.files.to_arrow().to_pylist()
    evidence = {word: sum(row["evidence"] == word for row in files) for word in _WORDS}
    changelogs = result.changelogs.to_arrow()["rows"].to_pylist()
    examined = sum(len(history.metadata) for history in result.histories.values())
    metadata = result.metadata.to_arrow()["columns"]
    facts: list[tuple[str, object]] = [
        ("format", result.source.format.name),
        ("where", result.where),
        ("examined", format_utc(result.examined_at)),
        ("versions", f"{len(result.traced_versions):,}"),
        (
            "data files",
            ", ".join(f"{count:,} {_WORDS[word]}" for word, count in evidence.items() if count) or "none",
        ),
        (
            "changelog files",
            _counts(len(changelogs), sum(map(bool, changelogs)), "with matching rows", changelogs.count(None)),
        ),
        (
            "metadata files with statistics",
            _counts(examined, len(metadata) - metadata.null_count, "naming a matching value", metadata.null_count),
        ),
        ("retention", result.holds),
        ("digest", f"sha256:{result.digest}"),
        ("call", Code(f"{result.source.open_expression}.trace({result.where!r})")),
    ]
    clean_up = result.source.format.maintenance.statistics_clean_up
    removal = [f"Its metadata files are removed by {clean_up}."] if clean_up and len(metadata) else []
    notes = [Line(note) for note in (*result.unknown_reasons, *result.notes, *removal, result.not_covered)]
    versions = result.versions.to_arrow()
    holding = versions.filter(
        pa.array([bool(version.rows or version.stored_rows) for _, version in result.traced_versions], pa.bool_())
    )
    # The lines above state reason and because.
    drawn = tuple(name for name in drawn_columns(holding) if name not in ("reason", "because"))
    shown = Frame(holding, title="", noun="versions with matching rows", drawn=drawn)
    parts: list[Part] = [Line(result.verdict), Pairs(tuple(facts)), *notes]
    parts += drawing_of(shown).parts if len(holding) else ()
    changelogs = result.changelogs.to_arrow()
    for frame, chosen in (
        (result.changelogs, changelogs.filter(pc.fill_null(pc.not_equal(changelogs["rows"], 0), fill_value=True))),
        (result.metadata, result.metadata.to_arrow()),
    ):
        if len(chosen):
            drawn = tuple(name for name in drawn_columns(chosen) if name != "because")
            parts += drawing_of(Frame(chosen, title="", noun=frame.noun, drawn=drawn)).parts
    return Drawing(title=f"Trace of rows in {result.source.name}", parts=tuple(parts))


@draw.register
def _lake(result: LakeTrace) -> Drawing:
    """Return the result as a drawing: the verdict, the tables, and what each leaves open."""
    rows = result.tables.to_arrow().to_pylist()
    facts: list[tuple[str, object]] = [
        ("where", result.where),
        ("examined", format_utc(result.examined_at)),
        ("digest", f"sha256:{result.digest}"),
        ("call", Code(result.call)),
    ]
    parts: list[Part] = [Line(result.verdict), Pairs(tuple(facts)), *drawing_of(result.tables).parts]
    kept = tuple((row["name"], row["holds"]) for row in rows if row["holds"])
    parts += [Line("What keeps the rows:"), Pairs(kept)] if kept else []
    asked = tuple((row["name"], row["open_questions"]) for row in rows if row["open_questions"])
    parts += [Line("Not examined:"), Pairs(asked[:_EXPLAINED])] if asked else []
    if len(asked) > _EXPLAINED:
        parts.append(Line(f"{len(asked) - _EXPLAINED:,} more tables have open questions; see tables."))
    files = result.files.to_arrow()
    chosen = files.filter(pc.fill_null(pc.not_equal(files["rows"], 0), fill_value=True))
    if len(chosen):
        frame = Frame(chosen, title=result.files.title, noun="files", drawn=drawn_columns(chosen))
        parts += [Line(f"{frame.title}:"), *drawing_of(frame).parts]
    parts += map(Line, result.notes)
    return Drawing(title=f"Trace of rows in {result.name}", parts=tuple(parts))


def _counts(total: int, chosen: int, which: str, unknown: int) -> str:
    more = f", {unknown:,} could not be examined" if unknown else ""
    return f"{total:,}, {chosen or 'none'} {which}{more}" if total else "none"
