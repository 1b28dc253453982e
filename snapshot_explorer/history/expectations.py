"""The versions at which a user expects what an analysis finds there, such as a backfill."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from snapshot_explorer.core.errors import InvalidArgumentError
from snapshot_explorer.core.refs.records import brief_repr
from snapshot_explorer.core.safe_text import sanitize

_KEYS = ("version", "reason", "committed_at")
_LONGEST_REASON = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """A version at which the user expects what is found there: a finding on it is no problem."""

    version: int
    reason: str
    """Why, such as `a backfill`."""
    committed_at: datetime | None = None
    """The time of the commit; None for any: after a rollback, a version may be another commit."""

    def __post_init__(self) -> None:
        """Refuse a version that is no number, and an empty reason."""
        version, reason, time = self.version, self.reason, self.committed_at
        values: tuple[object, object, object] = (version, reason, time)  # of a file or a caller, so of any type
        if type(values[0]) is not int:
            raise InvalidArgumentError(f"version must be a number, got {brief_repr(version)}.")
        if not isinstance(values[1], str) or not 0 < len(values[1].strip()) <= _LONGEST_REASON:
            raise InvalidArgumentError(f"reason must be a few words, such as 'a backfill', got {brief_repr(reason)}.")
        if not isinstance(values[2], datetime | None):
            raise InvalidArgumentError(f"committed_at must be a time, got {brief_repr(time)}.")

    def holds_for(self, committed_at: datetime | None) -> bool:
        """Return whether a commit of the version at this time is the expected one."""
        if self.committed_at is None:
            return True
        zoned = self.committed_at if self.committed_at.tzinfo else self.committed_at.replace(tzinfo=UTC)
        return committed_at == zoned

    def to_toml(self) -> str:
        """Return the lines for a file of settings that `check` and `Table.health` read."""
        reason = sanitize(self.reason).replace("\\", "\\\\").replace('"', '\\"')
        time = [] if self.committed_at is None else [f"committed_at = {self.committed_at.isoformat()}"]
        return "\n".join(["[[expected]]", f"version = {self.version}", *time, f'reason = "{reason}"'])


def expectations_of(values: object) -> tuple[Expectation, ...]:
    """Return the expectations of a list of mappings, as TOML has it below `[[expected]]`.

    Raises:
        InvalidArgumentError: It is no such list.
    """
    if not isinstance(values, list | tuple) or not all(isinstance(item, Mapping) for item in values):
        raise InvalidArgumentError(
            'expected must be a list, such as [[expected]] with version = 11 and reason = "a backfill".'
        )
    for item in values:
        unknown = next((name for name in item if name not in _KEYS), None)
        if unknown is not None or not {"version", "reason"} <= item.keys():
            raise InvalidArgumentError(
                f"expected has version, reason and committed_at (which may be left out), got {brief_repr(dict(item))}."
            )
    return tuple(Expectation(**item) for item in values)


def expected_reasons(expectations: Sequence[Expectation], commits: Mapping[int, datetime | None]) -> Mapping[int, str]:
    """Return the reason of each version that is expected.

    Args:
        commits: The commit time of versions.
    """
    return {
        item.version: item.reason
        for item in expectations
        if item.version in commits and item.holds_for(commits[item.version])
    }
