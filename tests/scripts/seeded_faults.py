"""Show which of 60 faults the quick tier of the tests finds: each is put into a copy of the package, one at a time.

    python -m tests.scripts.seeded_faults [--only WORD] [--near] [--jobs 2]

Runs first the tests that are named beside the fault, then, if they pass, the whole quick tier, until the
first failure. The copy is in a temporary folder: this clone stays as it is. Prints a line for each fault, and the
faults that no test found. Takes about a minute for each fault.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
COPIED = ("pyproject.toml", "README.md", "CHANGELOG.md", "binder", "notebooks", "snapshot_explorer", "tests", ".ci")


@dataclass(frozen=True)
class Fault:
    """A change of the package that tests should find."""

    what: str
    """The fault, in words."""
    path: str
    """The module, below the package."""
    before: str
    """The code, which occurs once in the module."""
    after: str
    """The code with the fault."""
    near: str
    """The files or folders of tests that should find it, below `tests`."""


FAULTS = (
    # Bytes.
    Fault(
        "a request is tried once more than it may be",
        "storage/retries.py",
        "self._made >= self._tries",
        "self._made > self._tries",
        "storage/test_failures.py",
    ),
    Fault(
        "a server's error status is not tried again",
        "storage/retries.py",
        "return any(isinstance(status, int) and status in _STATUSES for status in statuses)",
        "return False",
        "storage/test_failures.py",
    ),
    Fault(
        "a secret in base64 is shown",
        "storage/masks.py",
        "codes = {code for word in self._words for code in _encoded_patterns(word.strip())}",
        "codes = set()",
        "storage/test_masks.py",
    ),
    Fault(
        "a path in the metadata may lead out of the table's folder",
        "storage/location.py",
        'or "\\0" in path or _has_parent_step(path) or',
        'or "\\0" in path or',
        "storage/test_storage.py",
    ),
    Fault(
        "a folder that begins as the table's does is taken for the table's",
        "storage/location.py",
        """address.startswith(folder.rstrip("/") + "/")""",
        "address.startswith(folder)",
        "storage/test_locations.py table/test_external_files.py",
    ),
    Fault(
        "a range within another cuts the other one",
        "storage/ranges.py",
        "joined[-1] = joined[-1][0], max(end, joined[-1][1])",
        "joined[-1] = joined[-1][0], end",
        "storage/test_storage.py storage/test_requests.py",
    ),
    # Arrow kernels.
    Fault(
        "a deleted position behind the end of a file is accepted",
        "arrow/roaring.py",
        "if len(numbers) and numbers[-1] >= limit:",
        "if len(numbers) and numbers[-1] > limit:",
        "formats/delta/test_deletion_vectors.py formats/iceberg/test_deletes.py",
    ),
    Fault(
        "the nanoseconds of a time in 1970 are those of a time before",
        "arrow/orc_timestamps.py",
        "seconds -= (seconds < 0) &",
        "seconds -= (seconds <= 0) &",
        "arrow/test_orc_timestamps.py",
    ),
    Fault(
        "an INT96 time at the limit of the type overflows",
        "arrow/int96.py",
        "np.any((days >= limit)",
        "np.any((days > limit)",
        "arrow/test_int96.py",
    ),
    # Delta.
    Fault(
        "a deletion vector is ignored",
        "formats/delta/scan/read.py",
        "gone = read_deleted_positions(storage, file.vector, file.path, source.rows, removals)",
        "gone = None",
        "formats/delta/test_change_data.py",
    ),
    Fault(
        "a checkpoint without one of its parts counts",
        "formats/delta/metadata/log_segment.py",
        "if len(numbered) == count and min(numbered) == 1 and max(numbered) == count:",
        "if min(numbered) == 1 and max(numbered) == count:",
        "formats/delta/test_log_segment.py",
    ),
    Fault(
        "a time at which a table began to record times is on the other clock",
        "formats/delta/metadata/times.py",
        "is_later = millis >= self.begins",
        "is_later = millis > self.begins",
        "formats/delta/test_times.py",
    ),
    Fault(
        "a maximum that was cut is an upper bound",
        "formats/delta/scan/statistics.py",
        'if data_type.root == "string" and self.is_upper and pc.any(pc.ends_with(result, _CUT)).as_py():',
        'if data_type.root == "string" and self.is_upper and False:',
        "formats/delta/test_stats_columns.py formats/delta/test_statistics.py",
    ),
    Fault(
        "a reader feature that is refused is read",
        "formats/delta/metadata/supported.py",
        """name not in _KNOWN or _KNOWN[name].status == "refused"]""",
        "name not in _KNOWN]",
        "formats/delta/test_features.py",
    ),
    Fault(
        "VACUUM deletes what was removed at the cutoff",
        "formats/delta/expiry/retention.py",
        "kept = {path for row in removed if row.deleted_at >= cutoff for path in row.paths}",
        "kept = {path for row in removed if row.deleted_at > cutoff for path in row.paths}",
        "retention/test_delta.py",
    ),
    Fault(
        "a hint with a wrong checksum is followed",
        "formats/delta/metadata/hints.py",
        "return stated is None or stated ==",
        "return stated is None or True or stated ==",
        "formats/delta/test_hints.py",
    ),
    # Iceberg.
    Fault(
        "an equality delete deletes rows of its own commit",
        "formats/iceberg/deletes/equality.py",
        "result[indices] = self._newest[joined] > sequence_number",
        "result[indices] = self._newest[joined] >= sequence_number",
        "formats/iceberg/test_deletes.py",
    ),
    Fault(
        "a position delete of the data file's own commit is ignored",
        "formats/iceberg/deletes/index.py",
        "self._by_path.get(path, ()) if item.sequence_number >= sequence_number]",
        "self._by_path.get(path, ()) if item.sequence_number > sequence_number]",
        "formats/iceberg/test_deletes.py",
    ),
    Fault(
        "the checksum of a deletion vector is not compared",
        "formats/files/vector_blobs.py",
        """if zlib.crc32(body) != int.from_bytes(check, "big"):""",
        "if False:",
        "formats/iceberg/test_deletes.py",
    ),
    Fault(
        "a branch keeps a snapshot more than its minimum",
        "formats/iceberg/expiry/retention.py",
        "(count < minimum or item.timestamp_ms >= older_than)",
        "(count <= minimum or item.timestamp_ms >= older_than)",
        "retention/test_iceberg.py",
    ),
    Fault(
        "a column that a file lacks has no default",
        "formats/iceberg/files/columns.py",
        "if field.required and field.initial_default is None",
        "if field.required",
        "formats/iceberg/test_columns.py",
    ),
    # Paimon.
    Fault(
        "a deletion vector is ignored",
        "formats/paimon/scan/read.py",
        "if file.path in self.deleted_positions:",
        "if False:",
        "formats/paimon/test_read_tables.py",
    ),
    Fault(
        "files of level 0 are read with deletion vectors",
        "formats/paimon/scan/visibility.py",
        'shown &= entries.column("level").to_numpy() > 0',
        'shown &= entries.column("level").to_numpy() >= 0',
        "formats/paimon/test_visibility.py",
    ),
    Fault(
        "an old hint hides the newest snapshot",
        "formats/paimon/metadata/history.py",
        "if contents[0] is None or contents[1] is not None:",
        "if contents[0] is None:",
        "formats/paimon/test_history.py",
    ),
    Fault(
        "a number of nulls that was not recorded is that of another file",
        "formats/paimon/scan/statistics.py",
        "is_present = sizes > position",
        "is_present = sizes >= 0",
        "formats/paimon/test_pruning.py",
    ),
    Fault(
        "the file of a snapshot that expires at the end is deleted as well",
        "formats/paimon/expiry/retention.py",
        "if begin <= item.id < end]",
        "if begin <= item.id <= end]",
        "retention/test_metadata_files.py",
    ),
    # Hudi.
    Fault(
        "the delete blocks of log files are ignored",
        "formats/hudi/scan/merge.py",
        "np.ones(len(deleted), np.bool_),",
        "np.zeros(len(deleted), np.bool_),",
        "formats/hudi/test_log_files.py formats/hudi/test_tables.py",
    ),
    Fault(
        "a write that is not completed is a version",
        "formats/hudi/metadata/timeline.py",
        """return self.state == "completed" and self.action in WRITES""",
        """return self.state != "requested" and self.action in WRITES""",
        "formats/hudi/test_timeline.py",
    ),
    Fault(
        "the archiver moves the commit that it must keep",
        "formats/hudi/expiry/archival.py",
        "for version in active if version < bound and version not in kept]",
        "for version in active if version <= bound and version not in kept]",
        "formats/hudi/test_health.py formats/hudi/test_tables.py",
    ),
    # What formats share.
    Fault(
        "a row group with the last requested position is not read",
        "formats/row_groups.py",
        "np.searchsorted(keep, start) < np.searchsorted(keep, start + rows)",
        "np.searchsorted(keep, start) < np.searchsorted(keep, start + rows - 1)",
        "formats/test_row_groups.py",
    ),
    # History.
    Fault(
        "the version of a time is the one before where the times are equal",
        "history/resolving.py",
        "if seen[middle] <= ref.time:",
        "if seen[middle] < ref.time:",
        "refs/test_search.py",
    ),
    Fault(
        "a step back to the earliest version is refused",
        "history/resolving.py",
        "if index < ref.back:",
        "if index <= ref.back:",
        "refs/test_search.py",
    ),
    Fault(
        "a snapshot of the age of the limit is not stale",
        "history/management.py",
        "self._clock() - last >= limit",
        "self._clock() - last > limit",
        "management/test_management.py",
    ),
    Fault(
        "a limit of commits is one too many",
        "history/commits.py",
        "yield page.slice(0, left)",
        "yield page.slice(0, left + 1)",
        "table/test_contract.py",
    ),
    Fault(
        "a file is live in the version that removes it",
        "history/lifetimes/index.py",
        "= (first <= position) & (position < last)",
        "= (first <= position) & (position <= last)",
        "lifetimes/test_intervals.py lifetimes/test_delta.py",
    ),
    Fault(
        "a total that is not known is counted as 0",
        "history/lifetimes/index.py",
        """mask=sums[f"{name} unknown"] > 0) for name in _SUMMED]""",
        """mask=sums[f"{name} unknown"] < 0) for name in _SUMMED]""",
        "lifetimes/test_intervals.py lifetimes/test_delta.py",
    ),
    # Analyses.
    Fault(
        "deleted rows that are not known are counted as 0",
        "analysis/compare/files.py",
        "net = None if more is None or fewer is None else more - fewer",
        "net = (more or 0) - (fewer or 0)",
        "compare/test_comparison.py",
    ),
    Fault(
        "a total that a check does not know is 0",
        "analysis/checks/evaluation.py",
        "return None if value is None else int(value)",
        "return int(value or 0)",
        "checks",
    ),
    Fault(
        "Markdown of a check may contain HTML",
        "analysis/checks/result.py",
        "return escape(sanitize(content), quote=False).translate(_MARKDOWN)",
        "return sanitize(content).translate(_MARKDOWN)",
        "checks",
    ),
    Fault(
        "a partition of the size that is small enough is called small",
        "analysis/health/findings.py",
        "below = int((sizes < settings.small_bytes).sum())",
        "below = int((sizes <= settings.small_bytes).sum())",
        "health/test_health.py",
    ),
    Fault(
        "a file without metadata is called an orphan though metadata could not be read",
        "analysis/retention/orphans.py",
        "    if unread:\n        return",
        "    if False:\n        return",
        "table/test_orphans.py",
    ),
    Fault(
        "bisection returns the version after the first bad one",
        "analysis/rows/bisection.py",
        "begin = chosen + 1",
        "begin = chosen + 2",
        "rows/test_bisect.py",
    ),
    Fault(
        "a difference as large as the tolerance is a change",
        "analysis/diff/comparison_rules.py",
        "close = np.asarray(difference <= allowed, bool)",
        "close = np.asarray(difference < allowed, bool)",
        "rows/test_pair_diff.py",
    ),
    Fault(
        "a change that is as large as usual times the factor is a jump",
        "analysis/profile/anomalies.py",
        "is_jump = (sizes > rules.factor * usual) & is_large",
        "is_jump = (sizes >= rules.factor * usual) & is_large",
        "rows/test_anomalies.py",
    ),
    Fault(
        "a key with a null is compared",
        "analysis/diff/diff.py",
        "if column.null_count:",
        "if False:",
        "rows/test_row_diff.py",
    ),
    Fault(
        "text in a repair ends where a quote is in it",
        "analysis/repair/spark_sql.py",
        "and value.isprintable() and not _UNSAFE.intersection(value):",
        "and value.isprintable():",
        "repairs",
    ),
    # Engines and queries.
    Fault(
        "a limit is not counted down over parts",
        "engines/local.py",
        "missing = None if missing is None else missing - tables[-1].num_rows",
        "missing = None if missing is None else missing - 1",
        "engines/test_local.py table/test_contract.py",
    ),
    Fault(
        "the limit of a query on files is that of each run",
        "engines/duckdb_files.py",
        "left = None if left is None else left - rows.num_rows",
        "left = None if left is None else left",
        "engines/test_duckdb_files.py",
    ),
    Fault(
        "a file that may have a null is skipped for IS NULL",
        "engines/data_skipping.py",
        "return known[column].has_null if result else",
        "return known[column].has_value if result else",
        "engines/test_pruning.py",
    ),
    Fault(
        "a quote that is written twice within a name of a query stays",
        "table/queries/tokens.py",
        """return self.text[1:-1].replace("''", "'")""",
        "return self.text[1:-1]",
        "queries/test_references.py queries/test_sql.py",
    ),
    Fault(
        "a commit at the time that is requested is not of the history",
        "history/history.py",
        "last_committed_by(start - _MILLISECOND, self._log)",
        "last_committed_by(start, self._log)",
        "table/test_table.py",
    ),
    Fault(
        "a sum over commits of which one is not known is that of the others",
        "lake/overview.py",
        "name: None if None in values else sum(values)",
        "name: sum(value or 0 for value in values)",
        "lake/test_overview.py",
    ),
    Fault(
        "tables at the depth of the search are not found",
        "lake/discovery.py",
        "for _ in range(depth + 1):",
        "for _ in range(depth):",
        "table/test_discovery.py",
    ),
    Fault(
        "an export may be written into a table",
        "results/outputs.py",
        """is a folder. Give the path of a file in it.")
    _check_folders(path, target)""",
        """is a folder. Give the path of a file in it.")""",
        "table/test_read_only.py rows/test_row_diff.py",
    ),
    Fault(
        "an answer of a catalog that is larger than it may be is read",
        "table/catalogs/unity.py",
        "if len(content) > self._max_bytes:",
        "if False:",
        "lake/test_catalogs.py",
    ),
    Fault(
        "a condition on a float that integers do not hold exactly is pushed to Spark",
        "engines/spark/conditions.py",
        "case int() if dtype == pa.float64() and abs(value) <= _EXACT:",
        "case int() if dtype == pa.float64():",
        "engines",
    ),
    # Surfaces.
    Fault(
        "the name of a file in a drawing may contain HTML",
        "view/html.py",
        """return f'<td{tooltip}>{sign}{_isolate(name)} <span""",
        """return f'<td{tooltip}>{sign}{name} <span""",
        "view/test_html.py",
    ),
    Fault(
        "a control character reaches the terminal",
        "core/safe_text.py",
        "letter if letter.isprintable() or _joins(value, at) else",
        'letter if letter.isprintable() or letter == "\\x1b" or _joins(value, at) else',
        "view/test_text.py table/test_hostile_text.py",
    ),
    Fault(
        "a cost of the limit is asked for",
        "table/cost.py",
        "self.size_bytes > limits.size_bytes",
        "self.size_bytes >= limits.size_bytes",
        "table/test_deleted_rows.py",
    ),
    Fault(
        "the explorer follows new commits though an older version is chosen",
        "jupyter/explorer/state.py",
        "was_newest = self.b is None or self.b in before[-1:]",
        "was_newest = True",
        "jupyter/explorer/test_state.py",
    ),
)


def copy_of_clone(folder: Path) -> Path:
    """Copy what the tests need into a folder, and return it."""
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, folder)
    return folder


def finding_test(clone: Path, jobs: int, *paths: str) -> str | None:
    """Run tests of the quick tier until one fails, and return its name; None if all pass."""
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-x",
        "-p",
        "no:cacheprovider",
        "-n",
        str(jobs),
        "--dist",
        "loadfile",
    ]
    environment = {**os.environ, "PYTHONPATH": str(clone), "SNAPSHOT_EXPLORER_SAME_EXAMPLES": "1"}
    done = subprocess.run([*command, *paths], cwd=clone, env=environment, capture_output=True, text=True, check=False)
    if done.returncode == pytest.ExitCode.NO_TESTS_COLLECTED:  # all of these are in the full tier here
        return None
    failed = [line for line in done.stdout.splitlines() if line.startswith(("FAILED ", "ERROR "))]
    if bool(failed) != bool(done.returncode):
        raise RuntimeError(f"pytest ended with {done.returncode}:\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
    return failed[0].split(" ", 1)[1].partition(" - ")[0] if failed else None


def is_found(clone: Path, fault: Fault, jobs: int, *, only_near: bool) -> bool:
    """Put a fault into the copy, run tests until one finds it, and print a line."""
    module = clone / "snapshot_explorer" / fault.path
    text = module.read_text("utf-8")
    if text.count(fault.before) != 1:
        raise RuntimeError(f"The code of the fault is not once in {fault.path}: {fault.before}")
    module.write_text(text.replace(fault.before, fault.after), "utf-8")
    try:
        found = finding_test(clone, 0, *(f"tests/{name}" for name in fault.near.split()))
        if found is None and not only_near:
            found = finding_test(clone, jobs)
    finally:
        module.write_text(text, "utf-8")
    print(f"{'found' if found else 'MISSED'}: {fault.path}: {fault.what}{f', by {found}' if found else ''}", flush=True)
    return found is not None


def main() -> int:
    """Run the command; return 1 if more than a tenth of the faults are missed."""
    parser = argparse.ArgumentParser(prog="python -m tests.scripts.seeded_faults", description=__doc__.splitlines()[0])
    parser.add_argument("--only", metavar="WORD", default="", help="faults in whose path or words it occurs")
    parser.add_argument("--near", action="store_true", help="run only the tests that are named beside a fault")
    parser.add_argument("--jobs", type=int, default=2, help="processes that run tests")
    chosen = parser.parse_args()
    faults = [fault for fault in FAULTS if chosen.only in f"{fault.path} {fault.what}"]
    with tempfile.TemporaryDirectory(prefix="seeded-faults-") as folder:
        clone = copy_of_clone(Path(folder))
        missed = [fault for fault in faults if not is_found(clone, fault, chosen.jobs, only_near=chosen.near)]
    print(f"{len(faults) - len(missed)} of {len(faults)} faults were found")
    return int(10 * len(missed) > len(faults))


if __name__ == "__main__":
    sys.exit(main())
