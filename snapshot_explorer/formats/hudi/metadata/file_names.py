"""Names of base files and log files.

Source: hudi FSUtils.LOG_FILE_PATTERN, FSUtils.getCommitTime.
"""

import re
from dataclasses import dataclass

_BASE = re.compile(r"([^._][^_]*)_([^_]+)_(\d{1,18})\.(parquet|orc|hfile|lance)", re.ASCII)
_LOG = re.compile(r"\.([^._]+)_([^.]*)\.log\.(\d{1,9})(?:_((?:\d+)-(?:\d+)-(?:\d+))(\.cdc)?)?", re.ASCII)


@dataclass(frozen=True, slots=True, order=True)
class LogName:
    """The parts of a log file's name, in the order in which log files of a slice are read."""

    instant: str
    """Up to table version 7 the instant of the file slice; from 8 on the instant of the commit that wrote the file."""
    number: int
    token: str
    """The attempt that wrote it."""
    file_id: str


def base_instant(name: str) -> tuple[str, str] | None:
    """Return the file group and the instant in the name of a base file; None for other names."""
    matched = _BASE.fullmatch(name)
    return None if matched is None else (matched[1], matched[3])


def log_name(name: str) -> LogName | None:
    """Return the parts of the name of a log file; None for other names, and for files of change data."""
    matched = _LOG.fullmatch(name)
    if matched is None or matched[5]:
        return None
    return LogName(matched[2], int(matched[3]), matched[4] or "", matched[1])


def file_group(name: str) -> str | None:
    """Return the file group in the name of a base file, a log file or a file of change data; None for other names."""
    matched = _BASE.fullmatch(name) or _LOG.fullmatch(name)
    return None if matched is None else matched[1]
