"""The error for a data file that a reader of its format could not make sense of."""

from snapshot_explorer.errors import CorruptTableError, UnsupportedFeatureError


def unreadable(path: str, file_format: str, error: Exception) -> Exception:
    """Return the error to raise for what a reader said of a data file.

    Args:
        path: The file.
        file_format: What it was read as.
        error: What the reader raised.
    """
    said = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    if "crypt" in said.lower():
        return UnsupportedFeatureError(
            f"The data file {path} is encrypted. Encrypted files are not read; the table's history and files "
            "can still be looked at."
        )
    if "out of range" in said.lower() and "timestamp" in said.lower():
        return UnsupportedFeatureError(
            f"The data file {path} holds a timestamp outside of the years 1677 to 2262, which cannot be read "
            f"from {file_format}: {said}. Leave the column out with columns=[...]."
        )
    if "LogicalType that is not recognized" in said:
        return UnsupportedFeatureError(
            f"The data file {path} holds a type that the installed pyarrow does not know: {said}. Upgrade pyarrow."
        )
    return CorruptTableError(
        f"The data file {path} cannot be read as {file_format}: {said}. It may have been cut short or "
        "overwritten; compare it with a copy of the table."
    )
