"""Text that is safe in a terminal and a log: invisible characters are escaped, and in a log secrets of URLs hidden."""

import logging
import unicodedata
from collections.abc import Mapping

from snapshot_explorer.core.url_secrets import hide_url_secrets

_SPACE = 32
_JOINER, _EMOJI_STYLE = "\u200d", "\ufe0f"
_BYTES = 0xDC00
_SURROGATES = frozenset(map(chr, range(0xD800, 0xE000)))
_ESCAPED_BYTES = frozenset(map(chr, range(_BYTES + 0x80, _BYTES + 0x100)))
_ESCAPES = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def sanitize(value: str) -> str:
    r"""Return text on one line, with every invisible character escaped.

    Control, zero-width, direction-changing and private characters, unusual blanks and lone surrogates become `\n` or
    `\u200b`; so does a combining mark without a letter before it. A joiner between two emoji stays.
    """
    if value.isascii() and value.isprintable():
        return value
    shown = [
        letter if letter.isprintable() or _joins(value, at) else _ESCAPES.get(letter) or _escape(letter)
        for at, letter in enumerate(value)
    ]
    if value and unicodedata.category(value[0]).startswith("M"):
        shown[0] = _escape(value[0])
    return "".join(shown)


def _joins(value: str, at: int) -> bool:
    """Return whether a character is the zero-width joiner between two emoji, which then are one."""
    if value[at] != _JOINER or not 0 < at < len(value) - 1:
        return False
    return unicodedata.category(value[at + 1]) == "So" and (
        unicodedata.category(value[at - 1]) in ("So", "Sk") or value[at - 1] == _EMOJI_STYLE
    )


def escape_unencodable(value: str) -> str:
    r"""Return text that UTF-8 can encode: a byte of a file's name that is not UTF-8 becomes its escape, `\xff`."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return "".join(_escape_byte(letter) if letter in _SURROGATES else letter for letter in value)
    return value


def _escape_byte(letter: str) -> str:
    # Python reads such a byte as a lone surrogate.
    return _escape(chr(ord(letter) - _BYTES)) if letter in _ESCAPED_BYTES else _escape(letter)


def _escape(letter: str) -> str:
    code = ord(letter)
    return f"\\x{code:02x}" if code <= 0xFF else f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"  # noqa: PLR2004 - the ends of the ranges that the escapes cover


def sanitize_json(text: str) -> str:
    r"""Return JSON text with every invisible character as an escape such as `\u202e`, which is read as the same.

    A terminal that shows it is not driven by a name or a value in it, and no line reads from right to left.
    """
    if text.isascii() and "\x7f" not in text:
        return text  # the escapes below 32 are part of JSON
    return text.translate(_JsonEscapes())


class _JsonEscapes(dict[int, str]):
    """The text for each character in JSON: the character itself if it is visible, otherwise an escape."""

    def __missing__(self, code: int) -> str:
        letter = chr(code)
        units = letter.encode("utf-16-be", "surrogatepass")
        escape = "".join(f"\\u{units[at] << 8 | units[at + 1]:04x}" for at in range(0, len(units), 2))
        # Below 32 stand only the ends of lines between values.
        self[code] = letter if letter.isprintable() or code < _SPACE else escape
        return self[code]


class VisibleArguments(logging.Filter):
    """Escapes the arguments of log lines, so that no name in a table adds a line or changes a terminal's colors.

    The secrets of URLs, which a table may name its files by, are hidden.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        """Return True. Escapes the record's arguments, not its format string."""
        if isinstance(record.args, Mapping):
            record.args = {name: _argument(value) for name, value in record.args.items()}
        elif record.args:
            record.args = tuple(map(_argument, record.args))
        return True


def _argument(value: object) -> object:
    return value if value is None or isinstance(value, int | float) else sanitize(hide_url_secrets(str(value)))


def logger_of(name: str) -> logging.Logger:
    """Return the logger of that name, which escapes the arguments of every line.

    A standard logger with its level and handlers unchanged. Nothing is escaped for a disabled level.
    """
    result = logging.getLogger(name)
    if not any(isinstance(item, VisibleArguments) for item in result.filters):
        result.addFilter(VisibleArguments())
    return result
