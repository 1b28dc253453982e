"""Times in addition to UTC, in a zone that the user chose."""

from __future__ import annotations

from datetime import UTC, datetime, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from snapshot_explorer.core.errors import InvalidArgumentError


def zone_of(name: str) -> tzinfo | None:
    """Return the zone of that name; None for UTC, the computer's own for `local`."""
    if name == "UTC":
        return None
    if name == "local":
        return datetime.now(UTC).astimezone().tzinfo
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise InvalidArgumentError(
            f"{name!r} is not a time zone. Use a name such as Europe/Berlin, local or UTC."
        ) from error


def local_text(time: datetime, name: str) -> str:
    """Return a time in a zone, to the second; empty for UTC."""
    zone = zone_of(name)
    if zone is None:
        return ""
    local = time.astimezone(zone)
    return f"{local:%Y-%m-%d %H:%M:%S} {name if name != 'local' else local.tzname()}"
