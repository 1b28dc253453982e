"""Base files and log files that are read to check them."""

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.formats.file_checks import CheckedFile, FileCheck, FileReading, RecordedFile
from snapshot_explorer.formats.files.whole_files import check_file, without_footer
from snapshot_explorer.formats.hudi.files.data_files import BaseFile
from snapshot_explorer.formats.hudi.files.log_files import HudiLogFile, read_logs
from snapshot_explorer.formats.hudi.metadata.history import HudiSource
from snapshot_explorer.formats.hudi.metadata.schema import version_schema


def file_check(source: HudiSource) -> FileCheck:
    """Return the function that reads a file. Of a log file it decodes the blocks of all commits that wrote to it.

    Reads the metadata of all commits.
    """
    state, storage = source.state, source.storage
    logs = state.files.filter(pc.field("is_log"))
    commits = dict(zip(logs.column("path").to_pylist(), logs.column("commits").to_pylist(), strict=True))
    fields = version_schema(source, source.versions[-1]).fields if source.versions else ()

    def check(file: RecordedFile, reading: FileReading) -> CheckedFile:
        if file.path not in commits:
            is_orc = BaseFile(path=file.path, size_bytes=file.size_bytes, rows=file.rows).is_orc
            return check_file(storage, file, reading, "orc" if is_orc else "parquet")
        if reading != "bytes":
            return without_footer("log", reading)
        log = HudiLogFile(
            path=file.path,
            size_bytes=file.size_bytes,
            may_have_grown=not source.config.has_completion_times,
            commits=tuple(commits[file.path]),
            committed_before=state.start if state.is_cut else None,
        )
        read_logs(storage, [log], fields)
        return CheckedFile()

    return check
