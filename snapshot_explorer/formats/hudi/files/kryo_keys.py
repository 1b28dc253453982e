"""Keys of deleted records in delete blocks of version 1, as of Hudi 0.9: an array of HoodieKey, serialized by Kryo.

Source: hudi HoodieDeleteBlock and SerializationUtils of release 0.9; kryo 4 DefaultClassResolver, Output.writeString.
"""

from snapshot_explorer.arrow.corruption import CorruptBytesError

_KEY = "org.apache.hudi.common.model.HoodieKey"
_BY_NAME = 1
"""Precedes a class that is named, not registered."""
_NEW = 1
"""Precedes a new object. A larger number refers to an object that was written before, counted from 2."""
_IS_UTF_8, _IS_LONGER, _HAS_MORE = 0x80, 0x40, 0x80
_LARGEST_SHIFT = 28
"""The shift of the last byte of a 32-bit number."""


def record_keys(content: bytes) -> list[str]:
    """Return the record keys.

    Raises:
        CorruptBytesError: The content is truncated, or is not an array of keys.
        ValueError: A text is not UTF-8.
    """
    return _Reader(content).record_keys()


class _Reader:
    def __init__(self, content: bytes) -> None:
        self._content = content
        self._at = 0
        self._classes: list[str] = []
        self._objects: list[str | None] = []
        """The objects written so far, in order; None for arrays and keys, which are never referred to."""

    def record_keys(self) -> list[str]:
        self._begin(f"[L{_KEY};")
        keys = []
        for _ in range(self._number() - 1):
            self._begin(_KEY)
            self._text()  # the path of the partition
            keys.append(self._text())
        if self._at != len(self._content):
            raise CorruptBytesError(f"{len(self._content) - self._at} bytes after the last key")
        return keys

    def _begin(self, name: str) -> None:
        """Read the class of an object, which must be a new one of this class."""
        marker, index = self._number(), self._number()
        if index == len(self._classes):
            self._classes.append(self._new_text())
        if marker != _BY_NAME or self._classes[index : index + 1] != [name] or self._number() != _NEW:
            raise CorruptBytesError(f"no object of {name} before byte {self._at}")
        self._objects.append(None)

    def _text(self) -> str:
        marker = self._number()
        if marker == _NEW:
            text = self._new_text()
            self._objects.append(text)
            return text
        written = self._objects[marker - 2] if _NEW < marker < len(self._objects) + 2 else None
        if written is None:
            raise CorruptBytesError(f"no text before byte {self._at}")
        return written

    def _new_text(self) -> str:
        first = self._byte()
        if not first & _IS_UTF_8:  # characters of ASCII; the last one is marked
            characters = bytearray([first])
            while not characters[-1] & _IS_UTF_8:
                characters.append(self._byte())
            characters[-1] &= 0x7F
            return characters.decode()
        length = first & 0x3F | (self._number() << 6 if first & _IS_LONGER else 0)
        start = self._at
        for _ in range(length - 1):  # Java's characters: those outside of the basic plane are two, of three bytes each
            byte = self._byte()
            self._at += (byte >= 0xC0) + (byte >= 0xE0)  # noqa: PLR2004 - the first bytes of two and of three
        if length == 0 or self._at > len(self._content):
            raise CorruptBytesError(f"a text of {length} characters at byte {start}")
        units = self._content[start : self._at].decode("utf-8", "surrogatepass")
        return units.encode("utf-16-le", "surrogatepass").decode("utf-16-le")

    def _number(self) -> int:
        number = 0
        for shift in range(0, _LARGEST_SHIFT + 1, 7):
            byte = self._byte()
            number |= (byte & 0x7F) << shift
            if not byte & _HAS_MORE:
                return number
        raise CorruptBytesError(f"a number of more than 32 bits before byte {self._at}")

    def _byte(self) -> int:
        if self._at >= len(self._content):
            raise CorruptBytesError(f"a byte expected at byte {self._at}")
        self._at += 1
        return self._content[self._at - 1]
