"""What is drawn of checks, of a diagnosis, and of the health of a table."""

from snapshot_explorer.analysis.checks.result import CheckResult
from snapshot_explorer.analysis.health.result import Health
from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.arrow.value_text import NOT_CHECKED, format_total_size
from snapshot_explorer.core.hints import Hint, Message
from snapshot_explorer.core.records import MaintenanceSettings
from snapshot_explorer.core.text import format_size, pluralize
from snapshot_explorer.view.dispatch import draw, drawing_of
from snapshot_explorer.view.drawing import Code, Drawing, Grid, Line, Pairs, Part

_MOST_CHECKS = 200
_WORST = 10
"""The number of partitions and buckets in the drawing."""
_GROUP = (
    "partition",
    "bucket",
    "files",
    "size_bytes",
    "median_bytes",
    "small_files",
    "mergeable_files",
    "skew",
    "sorted_runs",
    "deleted_ratio",
)

_NOT_CHECKED = Message(
    "Not checked: whether rows are doubled (", Hint("table.health", {"key": [...]}), "), and whether values are right."
)
_VALUES_NOT_CHECKED = "Not checked: whether values are right."


@draw.register
def _result(result: CheckResult) -> Drawing:
    """Return the drawing: the verdict, and rules that did not pass; for one table also rules that passed."""
    is_lake = len({line.table for line in result.lines}) > 1
    shown = [line for line in result.sorted_lines if line.state != "passed" or not is_lake]
    rows = [
        (f"{line.state or NOT_CHECKED}: {f'{line.table}, ' if is_lake else ''}{line.rule}", line.found)
        for line in shown[:_MOST_CHECKS]
    ]
    more = len(shown) - _MOST_CHECKS
    cut_off = [Line(f"and {pluralize(more, 'more check')}; .frame has all.")] if more > 0 else []
    parts: list[Part] = [Line(result.window), *([Pairs(tuple(rows))] if rows else []), *cut_off]
    return Drawing(title=f"{result.name}: {result.verdict}", parts=tuple(parts))


@draw.register
def _health(health: Health) -> Drawing:
    """What went wrong, the worst of it as the title, then the verdict, sizes and thresholds, findings, partitions."""
    parts: list[Part] = []
    problems = [symptom.sentence for symptom in health.symptoms if symptom.is_problem]
    for at, symptom in enumerate(health.symptoms):
        parts += [*([Line(symptom.sentence)] if at or not problems else []), Code(Message(symptom.hint))]
    if problems:
        parts.append(Line(f"{problem_count(health)}."))
    if health.symptoms:
        parts.append(Line("Maintenance of the version:"))
    parts.append(Line(health.verdict))
    if health.settings is not None:
        parts += _of_version(health, health.settings)
    if health.symptoms:
        is_keyed = any(symptom.hint.verb == "snapshot.duplicates" for symptom in health.symptoms)
        parts.append(Line(_VALUES_NOT_CHECKED if is_keyed else _NOT_CHECKED, is_faint=True))
    heading = f"Health of {health.name} at version {health.version}"
    answer = f"{heading}: {problem_count(health)}" if health.symptoms else heading
    return Drawing(title=Message(f"{health.name}: ", problems[0]) if problems else answer, parts=tuple(parts))


def problem_count(health: Health) -> str:
    """Return how many things there are to look at, and how much is unknown."""
    is_urgent = any(item.state == "act" for item in health.evaluated)
    states = [symptom.is_problem for symptom in health.symptoms]
    states.append(is_urgent if health.failure is None else health.failure.is_problem)
    problems, unknown = states.count(True), states.count(None)
    answer = f"{pluralize(problems, 'thing')} to look at" if problems else "nothing to look at"
    return f"{answer} in what was checked, {unknown} of {len(states)} unknown" if unknown else answer


def _of_version(health: Health, settings: MaintenanceSettings) -> list[Part]:
    parts: list[Part] = [Pairs(tuple(_facts(health, settings)))]
    parts.append(Pairs(tuple((f"{item.state}: {item.finding}", item.description) for item in health.evaluated)))
    if any(item.state in ("act", "watch") for item in health.evaluated):
        parts += [Line(note) for note in settings.notes]
    if len(health.partitions) > 1:
        parts += [
            Line(f"{health.partitions.noun.capitalize()}, those with the most removable files first:"),
            _worst(health),
        ]
    if settings.runs_trigger is not None and len(health.levels):
        parts += [Line("Levels:"), *drawing_of(health.levels).parts]
    return parts


def _worst(health: Health) -> Grid:
    rows = health.partitions.to_arrow()
    shown = [name for name in _GROUP if rows[name].null_count < len(rows)]
    without = {"partition"} if not any(rows["partition"].slice(0, 1).to_pylist()) else set()
    without |= {"deleted_ratio"} if not pc.sum(rows["vector_files"]).as_py() else set()
    shown = [name for name in shown if name not in without]
    first = rows.slice(0, _WORST).select(shown)
    return Grid(first, total=len(rows), noun=health.partitions.noun, limit=_WORST)


def _facts(health: Health, settings: MaintenanceSettings) -> list[tuple[str, object]]:
    rows = health.partitions.to_arrow()
    files, size_bytes = (pc.sum(rows[name]).as_py() or 0 for name in ("files", "size_bytes"))
    known = not rows["rows"].null_count
    return [
        ("files", files),
        ("rows in files", f"{pc.sum(rows['rows']).as_py() or 0:,}" if known else None),
        ("size", format_total_size(rows["size_bytes"])),
        (
            "average file size",
            format_size(size_bytes // files) if files and not rows["size_bytes"].null_count else None,
        ),
        ("target file size", f"{format_size(settings.target_bytes)}: {settings.target_source}"),
        ("small file threshold", f"{format_size(settings.small_bytes)}: {settings.small_source}"),
    ]
