"""The error for damaged bytes of a file whose name the decoder does not have."""


class CorruptBytesError(ValueError):
    """Bytes are truncated or contradict their format. The message contains the reason; the caller adds the file."""
