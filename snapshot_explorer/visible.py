"""Text that a terminal and a log show as it is: what cannot be seen is escaped."""

import logging
import unicodedata
from collections.abc import Mapping

_ESCAPES = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def visible(value: str) -> str:
    r"""Return text on one line, with every character that cannot be seen escaped.

    Control, zero-width, direction-changing and private characters, unusual blanks and lone surrogates become `\n` or
    `\u200b`; so does a combining mark that has nothing to combine with.
    """
    if value.isascii() and value.isprintable():
        return value
    shown = [letter if letter.isprintable() else _ESCAPES.get(letter) or _escaped(letter) for letter in value]
    if value and unicodedata.category(value[0]).startswith("M"):
        shown[0] = _escaped(value[0])
    return "".join(shown)


def _escaped(letter: str) -> str:
    code = ord(letter)
    return f"\\x{code:02x}" if code <= 0xFF else f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"  # noqa: PLR2004 - the ends of the ranges that the escapes cover


class VisibleArguments(logging.Filter):
    """Escapes what a log line is filled with, so that no name in a table adds a line or colours a terminal."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Return True; the record's arguments are escaped, the text of the program itself stays as it is."""
        if isinstance(record.args, Mapping):
            record.args = {name: _argument(value) for name, value in record.args.items()}
        elif record.args:
            record.args = tuple(map(_argument, record.args))
        return True


def _argument(value: object) -> object:
    return value if value is None or isinstance(value, int | float) else visible(str(value))


def logger_of(name: str) -> logging.Logger:
    """Return the logger of that name, which escapes the arguments of every line.

    A logger of the standard library, with its level and handlers untouched. Nothing is escaped for a level that is
    switched off.
    """
    found = logging.getLogger(name)
    if not any(isinstance(one, VisibleArguments) for one in found.filters):
        found.addFilter(VisibleArguments())
    return found
