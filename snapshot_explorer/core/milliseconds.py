"""Times as milliseconds since 1970, as the metadata of tables stores them."""

from datetime import UTC, datetime, timedelta

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)


def to_millis(time: datetime) -> int:
    """Return an aware time in whole milliseconds since 1970, rounded down."""
    return (time - EPOCH) // _MILLISECOND


def from_millis(millis: int) -> datetime:
    """Return the aware time, in UTC, of milliseconds since 1970.

    Raises:
        OverflowError: The time is not in the years 1 to 9999.
    """
    return EPOCH + timedelta(milliseconds=millis)
