"""Pictures as PNG, drawn without a browser: for pages that drop SVG, such as notebooks that are not trusted."""

import struct
import zlib
from base64 import b64encode
from collections.abc import Sequence
from html import escape

import numpy as np
import numpy.typing as npt

PAPER = "#FFFFFF"
_LETTERS = "0123456789abcdefghijklmnopqrstuvwxyzABGMPTk+\N{MINUS SIGN},.:?~-"
_ROWS = (
    "0E11131519110E 040C040404040E 0E11010204081F 1F02040201110E 02060A121F0202 1F101E0101110E 0608101E11110E "
    "1F010204080808 0E11110E11110E 0E11110F01020C 00000E010F110F 1010161911111E 00000E1010110E 01010D1311110F "
    "00000E111F100E 0609081C080808 000F11110F010E 10101619111111 04000C0404040E 0200060202120C 10101214181412 "
    "0C04040404040E 00001A15151111 00001619111111 00000E1111110E 00001E111E1010 00000D130F0101 00001619101010 "
    "00000E100E011E 08081C08080906 0000111111130D 00001111110A04 0000111115150A 0000110A040A11 000011110F010E "
    "00001F0204081F 0E11111F111111 1E11111E11111E 0E11101711110F 111B1515111111 1E11111E101010 1F040404040404 "
    "10101214181412 0004041F040400 0000001F000000 000000000C0408 00000000000C0C 000C0C000C0C00 0E110102040004 "
    "00000815020000 0000001F000000"
)
_LINES = {"x": "/\\", "+": "|-", ".": ""}
"""The lines of patterns that have several, or none."""
_EVERY, _THIN = 16, 3
"""The distance and the width of lines, in points."""
_WIDTH, _HEIGHT = 5, 7
"""The size of a letter in points; `_ROWS` has seven rows of each letter in hexadecimal digits, a bit for a point."""


class Canvas:
    """A picture of twice as many points as pixels on the page, in a few colors."""

    def __init__(self, width: int, height: int) -> None:
        """Make white paper of a size in points."""
        self._points = np.zeros((height, width), np.uint8)
        self._colors = [PAPER]

    def fill(self, x: float, y: float, width: float, height: float, color: str, *, pattern: str = "") -> None:
        """Fill a rectangle, with lines of paper in a pattern, as plotly names it; a size may be negative."""
        (left, right), (top, bottom) = sorted((round(x), round(x + width))), sorted((round(y), round(y + height)))
        box = self._points[max(0, top) : bottom, max(0, left) : right]
        box[:] = self._index(color)
        ys, xs = np.indices(box.shape)
        lines = {"/": xs + ys, "\\": xs - ys, "|": xs, "-": ys}
        for name, place in lines.items():
            if name in _LINES.get(pattern, pattern):
                box[(place + _EVERY // 2) % _EVERY < _THIN] = 0

    def write(self, x: float, y: float, text: str, color: str, *, align: float = 0, size: int = 3) -> int:
        """Write text with its upper edge at `y`, and return its width; `align` is the share of it left of `x`."""
        width = (_WIDTH + 1) * size * len(text) - size
        left = min(max(0, round(x - align * width)), max(0, self._points.shape[1] - width))
        glyphs = _ROWS.split()
        for index, letter in enumerate(text):
            if letter == " ":
                continue
            at = _LETTERS.find(letter)
            bits = np.unpackbits(np.frombuffer(bytes.fromhex(glyphs[at]), np.uint8)[:, None], axis=1)[:, -_WIDTH:]
            ys, xs = np.nonzero(bits.repeat(size, 0).repeat(size, 1))
            self._points[round(y) + ys, left + index * (_WIDTH + 1) * size + xs] = self._index(color)
        return width

    def _index(self, color: str) -> int:
        if color not in self._colors:
            self._colors.append(color)
        return self._colors.index(color)

    def html(self, alternative: str) -> str:
        """Return the picture as an element that needs no script and no style."""
        height, width = self._points.shape
        return image_html("png", self.png(), alternative, f' width="{width // 2}" height="{height // 2}"')

    def png(self) -> bytes:
        """Return the picture as a PNG file."""
        return _png(self._points, self._colors)


def image_html(kind: str, content: bytes, alternative: str, size: str = "") -> str:
    """Return a picture as an element that pages keep which drop SVG: notebooks that are not trusted, and GitHub."""
    return (
        f'<img class="sx-picture" src="data:image/{kind};base64,{b64encode(content).decode()}" '
        f'alt="{escape(alternative)}"{size} style="max-width:100%;height:auto">'
    )


def _png(points: npt.NDArray[np.uint8], colors: Sequence[str]) -> bytes:
    """Return indexes of colors as a PNG file. Source: PNG specification, "Datastream structure"."""
    height, width = points.shape
    header = struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)
    rows = np.insert(points, 0, 0, axis=1)  # a row begins with its filter, 0 for none
    parts = (
        (b"IHDR", header),
        (b"PLTE", bytes.fromhex("".join(color[1:] for color in colors))),
        (b"IDAT", zlib.compress(rows.tobytes(), 9)),
        (b"IEND", b""),
    )
    ends = ((name + content, len(content)) for name, content in parts)
    chunks = (struct.pack(">I", size) + part + struct.pack(">I", zlib.crc32(part)) for part, size in ends)
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)
