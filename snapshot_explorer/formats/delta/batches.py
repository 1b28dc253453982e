"""Commit files, read so many at once as memory should hold."""

from collections.abc import Iterator, Sequence

from snapshot_explorer.formats.delta.layout import LogFile
from snapshot_explorer.storage import Storage

BYTES_AT_ONCE = 16 << 20
"""Bytes of commits that are in memory at the same time."""
_UNKNOWN_SIZE = 4_096
"""Taken for the size of a commit that the listing does not tell."""


def first_batch(commits: Sequence[LogFile], limit: int) -> tuple[Sequence[LogFile], Sequence[LogFile]]:
    """Return the first commits, so many as hold that many bytes, at least one of them, and those that are left."""
    held = 0
    for place, commit in enumerate(commits):
        held += _UNKNOWN_SIZE if commit.size_bytes is None else commit.size_bytes
        if held >= limit:
            return commits[: place + 1], commits[place + 1 :]
    return commits, ()


def contents(storage: Storage, commits: Sequence[LogFile]) -> Iterator[tuple[int, str, bytes]]:
    """Yield version, path and bytes of commits, in their order; a request each, those of a batch concurrently."""
    left = commits
    while left:
        some, left = first_batch(left, BYTES_AT_ONCE)
        for commit, content in zip(some, storage.read_each([one.path for one in some]), strict=True):
            yield commit.version, commit.path, content
