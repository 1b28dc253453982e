"""The commit times that writers recorded, which copies of a table keep, unlike the times of the log's files."""

import re
from datetime import UTC, datetime
from typing import ClassVar

import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.core import frames
from snapshot_explorer.core.hints import Hint, Message
from snapshot_explorer.core.text import format_utc
from snapshot_explorer.formats.capabilities import CommitClock

_RECORDED = re.compile(r'"timestamp":\s*(\d{10,15})\b', re.ASCII)
"""The time of Delta's commitInfo in `details`, in milliseconds."""


class DeltaClock(CommitClock):
    """Commit times that may be the times of the log's files."""

    has_file_times: ClassVar[bool] = True

    def with_recorded_times(self, commits: pa.Table) -> pa.Table:
        """Return COMMITS with the times that their writers recorded, in their order.

        A commit without a recorded time, or with an in-commit timestamp, keeps its time.

        Source: delta PROTOCOL.md, "Commit Provenance Information".
        """
        texts = pc.extract_regex(commits["details"], _RECORDED.pattern.replace("(", "(?P<time>", 1))
        millis = pc.struct_field(texts, "time").cast(pa.int64())
        is_file_time = pc.invert(pc.fill_null(pc.match_substring(commits["details"], '"inCommitTimestamp"'), False))  # noqa: FBT003 - the value that null becomes
        recorded = pc.and_(millis.is_valid(), is_file_time)
        at = frames.COMMITS.get_field_index("committed_at")
        dtype = frames.COMMITS.field(at).type
        times = pc.if_else(recorded, millis.cast(pa.timestamp("ms", "UTC")).cast(dtype), commits["committed_at"])
        return commits.set_column(at, frames.COMMITS.field(at), times)

    def copied_note(self, commits: pa.Table) -> str | None:
        """Return a sentence if commit times differ by a day or more from the recorded times; otherwise None.

        They differ after the table was copied: without in-commit timestamps, commit times are the times of the log's
        files. Only the newest of the COMMITS is compared. None if it has no recorded time, or an in-commit timestamp.

        Source: delta PROTOCOL.md, "Commit Provenance Information".
        """
        newest = commits.slice(0, 1).select(["version", "committed_at", "details"]).to_pylist()
        if not newest or newest[0]["committed_at"] is None:
            return None
        details = newest[0]["details"] or ""
        match = _RECORDED.search(details)
        if match is None or '"inCommitTimestamp"' in details:
            return None
        try:
            recorded = datetime.fromtimestamp(int(match[1]) / 1000, UTC)
        except (ValueError, OverflowError, OSError):
            return None
        days = abs(newest[0]["committed_at"] - recorded).days
        if not days:
            return None
        return Message(
            f"Commit times are the times of the log's files. The writer of version {newest[0]['version']} recorded "
            f"{format_utc(recorded)}, {days:,} {'day' if days == 1 else 'days'} apart: the table was probably copied. "
            "Refs by time follow the files, as in Delta; ",
            Hint("table.history", {"recorded_times": True}),
            " shows the recorded times.",
        )
