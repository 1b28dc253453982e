"""The error for a data file that cannot be decoded."""

from snapshot_explorer.errors import CorruptTableError, UnsupportedFeatureError


def unreadable(path: str, file_format: str, error: Exception) -> Exception:
    """Return our error for a reader's error about a data file.

    Args:
        path: The file.
        file_format: The format it was read as.
        error: The reader's error.
    """
    text = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    if "crypt" in text.lower():
        return UnsupportedFeatureError(
            f"The data file {path} is encrypted. Encrypted files are not read; the table's history and files "
            "can still be looked at."
        )
    if "out of range" in text.lower() and "timestamp" in text.lower():
        return UnsupportedFeatureError(
            f"The data file {path} holds a timestamp outside of the years 1677 to 2262, which cannot be read "
            f"from {file_format}: {text}. Leave the column out with columns=[...]."
        )
    if "LogicalType that is not recognized" in text:
        return UnsupportedFeatureError(
            f"The data file {path} holds a type that the installed pyarrow does not know: {text}. Upgrade pyarrow."
        )
    return CorruptTableError(
        f"The data file {path} cannot be read as {file_format}: {text}. It may have been cut short or "
        "overwritten; compare it with a copy of the table."
    )
