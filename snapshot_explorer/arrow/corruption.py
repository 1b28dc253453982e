"""The error of code that reads bytes without knowing their file's name."""


class CorruptBytesError(ValueError):
    """Bytes are cut short or contradict their format; the message says how, the caller names the file."""
