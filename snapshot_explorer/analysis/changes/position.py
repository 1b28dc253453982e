"""`ChangePosition`: the version up to which row changes were read, with what identifies its commit. Saved as JSON."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from snapshot_explorer.core.errors import InvalidArgumentError
from snapshot_explorer.core.refs.records import brief_repr

_LAYOUT = 1
"""The layout of the text: another number is refused."""
_MAX_TEXT = 65_536
"""The maximum number of characters of a position."""
MAX_PENDING, MAX_READ = 1_000, 100
"""The newest pending commits, and the newest versions, that a position contains."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangePosition:
    """The version after which the next changes begin. It has neither a path nor storage options."""

    format: str
    """The name of the table's format."""
    branch: str
    """The name of the branch, also of the main one."""
    version: int | None
    """The version whose changes were read last; None if nothing was read."""
    fingerprint: str = ""
    """The identity of the version's commit, see `TableFormat.fingerprint`; empty without a version."""
    pending: tuple[int, ...] = ()
    """Earlier versions that were being written when this one was read, and that may be completed later (Hudi)."""
    read: tuple[int, ...] = ()
    """The newest versions up to this one, ascending, in formats that need not commit versions in their order."""

    @property
    def text(self) -> str:
        """Return the position as JSON, which `parse_position` reads."""
        content = {
            "layout": _LAYOUT,
            "format": self.format,
            "branch": self.branch,
            "version": self.version,
            "fingerprint": self.fingerprint,
            "pending": list(self.pending),
            "read": list(self.read),
        }
        return json.dumps(content, ensure_ascii=True)


def is_position(value: object) -> bool:
    """Return whether a start is the text of a position rather than a ref."""
    return isinstance(value, str) and value.lstrip()[:1] == "{"


def parse_position(text: str) -> ChangePosition:
    """Return the position in a text.

    Raises:
        InvalidArgumentError: The text is not one that `ChangePosition.text` returns.
    """
    if len(text) > _MAX_TEXT:
        raise _invalid(f"it has {len(text):,} characters", text)
    try:
        content: Any = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _invalid("it is not JSON", text) from error
    if not isinstance(content, dict) or content.get("layout") != _LAYOUT:
        raise _invalid(f"its layout is not {_LAYOUT}", text)
    version = content.get("version")
    lists: tuple[Any, Any] = content.get("pending"), content.get("read", [])
    texts = content.get("format"), content.get("branch"), content.get("fingerprint")
    if not (
        all(isinstance(value, str) for value in texts)
        and (version is None or _is_version(version))
        and all(isinstance(numbers, list) and all(map(_is_version, numbers)) for numbers in lists)
    ):
        raise _invalid("a field is missing or has another type", text)
    return ChangePosition(
        format=content["format"],
        branch=content["branch"],
        version=version,
        fingerprint=content["fingerprint"],
        pending=tuple(lists[0]),
        read=tuple(lists[1]),
    )


def _is_version(value: object) -> bool:
    return type(value) is int and 0 <= value < 2**63


def _invalid(problem: str, text: str) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"{brief_repr(text)} is not a position of changes: {problem}. Pass the text of a cursor's position, a version, "
        "or a time such as @2h."
    )
