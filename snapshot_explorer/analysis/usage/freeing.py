"""`FreeingExpiry`: the expiry that keeps the most versions and frees at least a number of bytes, by `retention`."""

import re
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from snapshot_explorer.analysis.retention import Retention, retention_of
from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.core.errors import InvalidArgumentError, UnsupportedFeatureError
from snapshot_explorer.core.hints import Hint, Message
from snapshot_explorer.core.progress import step
from snapshot_explorer.core.refs.records import brief_repr
from snapshot_explorer.history import History

_SIZE = re.compile(r"\s*(\d{1,18}(?:\.\d{1,9})?)\s*([kmgtp]?)b?\s*", re.ASCII | re.IGNORECASE)
_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4, "p": 5}
_RULES: tuple[Mapping[str, str], ...] = ({"keep": "0d"}, {})
"""Arguments beside `keep_last`: versions are kept for no age, in formats that have an age and a number at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FreeingExpiry:
    """The expiry that keeps the most of the newest versions and frees at least the requested bytes."""

    needed_bytes: int
    """The requested bytes."""
    freed_bytes: int
    """The size of the files that it certainly deletes."""
    is_enough: bool
    """Whether that is at least the requested bytes; otherwise this is the strictest expiry."""
    keep_last: int
    """The number of the newest versions that the expiry keeps by number."""
    hint: Hint
    """The call of `Table.retention` with the same effect."""
    retention: Retention
    """Its versions, files and commands of engines."""


def expiry_that_frees(history: History, needed_bytes: int, versions: int) -> FreeingExpiry | None:
    """Return the expiry that keeps the most versions and frees enough, by bisection; None without versions.

    Computes some 12 retentions for 2,000 versions. A rule that the format refuses frees nothing.

    Args:
        versions: The number of versions that expiry may remove or keep.

    Raises:
        UnsupportedFeatureError: The format refuses every number of versions.
    """
    if not versions:
        return None
    now = datetime.now(UTC)
    table_format, lifetimes = history.table_format, history.lifetimes()

    def retention(rule: Mapping[str, str], keep_last: int) -> Retention:
        keep = rule.get("keep")
        return retention_of(table_format, lifetimes, keep=keep, keep_last=keep_last, name=history.name, now=now)

    with step("Computing retentions", total=None), table_format.storage.reading_once():

        def freed_by(rule: Mapping[str, str], keep_last: int) -> int:
            try:
                return _freed(retention(rule, keep_last))
            except InvalidArgumentError:
                return -1

        strictest, rule = max(((freed_by(rule, 1), rule) for rule in _RULES), key=lambda item: item[0])
        if strictest < 0:
            raise UnsupportedFeatureError(
                Message(
                    f"to_free is not supported for {table_format.title} tables: they expire by age alone, and it looks "
                    "for a number of versions. Compare ages with ",
                    Hint("table.retention", {"keep": "7d"}),
                    ".",
                )
            )

        def is_too_little(keep_last: int) -> bool:
            return freed_by(rule, keep_last) < needed_bytes

        keep_last = max(1, bisect_right(range(1, versions + 1), False, key=is_too_little))  # noqa: FBT003 - a value
        result = retention(rule, keep_last)
    freed = _freed(result)
    return FreeingExpiry(
        needed_bytes=needed_bytes,
        freed_bytes=freed,
        is_enough=freed >= needed_bytes,
        keep_last=keep_last,
        hint=Hint("table.retention", {**rule, "keep_last": keep_last}),
        retention=result,
    )


def _freed(retention: Retention) -> int:
    """Return the size of the files that are certainly deleted, as far as sizes are known."""
    return pc.sum(retention.expiry.freed["size_bytes"]).as_py() or 0


def parse_size(value: object) -> int:
    """Return a number of bytes, from a number or text in decimal units, such as `1.5 GB`."""
    match = _SIZE.fullmatch(value) if isinstance(value, str) else None
    if match is not None:
        number, decimals = (*match[1].split("."), "")[:2]
        power = 3 * _POWERS[match[2].lower()]
        return int(int(number + decimals) * 10**power // 10 ** len(decimals))
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    raise InvalidArgumentError(
        f"to_free must be a number of bytes, or text such as '500 MB' or '1.5 GB', got {brief_repr(value)}."
    )
