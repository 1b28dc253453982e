"""Parser for sizes in table properties: `128 mb`, `134217728`."""

import re

_SIZE = re.compile(r"\s*([0-9]{1,18})\s*([a-z]*)\s*", re.IGNORECASE)
_POWERS = {
    name: power
    for power, names in enumerate(
        (
            ("", "b", "bytes"),
            ("k", "kb", "kib", "kibibytes"),
            ("m", "mb", "mib", "mebibytes"),
            ("g", "gb", "gib", "gibibytes"),
            ("t", "tb", "tib", "tebibytes"),
        )
    )
    for name in names
}
_GREATEST = 2**62


def parse_bytes(text: str) -> int | None:
    """Return a size in bytes, at least 1; None if the text is not a size. A kb is 1,024 bytes.

    Source: paimon MemorySize; spark JavaUtils.byteStringAs.
    """
    found = _SIZE.fullmatch(text)
    power = _POWERS.get(found[2].lower()) if found else None
    if found is None or power is None:
        return None
    size = int(found[1]) * 1024**power
    return size if 0 < size <= _GREATEST else None
