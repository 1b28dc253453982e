"""The error for damaged bytes, raised by decoders that do not have the file's name."""


class CorruptBytesError(ValueError):
    """Bytes are truncated or contradict their format. The message contains the reason; the caller adds the file."""
