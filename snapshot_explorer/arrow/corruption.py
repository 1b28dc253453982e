"""The error of code that reads bytes without knowing their file's name."""


class CorruptBytesError(ValueError):
    """Bytes are truncated or contradict their format. The message contains the reason; the caller adds the file."""
