"""A magic's line, split into words.

Quotes group the words that they enclose, and nothing else is special: a backslash is a letter (Windows
paths), and so is a lone apostrophe: every line can be split.
"""

import re
from dataclasses import dataclass, field, replace

_FLAG_VALUE = re.compile(r"--?[A-Za-z][\w-]*=(?=[\"'])")


@dataclass(frozen=True, slots=True)
class Token:
    """A word of a line."""

    text: str
    """Its text, without the quotes around it."""
    quote: str = ""
    """The quote around it, or around the value of `--flag=`; empty without one."""
    flag: str = ""
    """The flag of `--flag="quoted value"`; empty for other words."""
    start: int = field(default=0, compare=False)


def tokenize(line: str) -> tuple[Token, ...]:
    """Return the words of a line.

    Blanks separate words, but not within quotes, and not within `{...}`, which may contain an expression. A quote
    opens at the start of a word or of the value of `--flag=`, and closes where a blank or the end follows, so
    that the SQL in `'name = 'x''` keeps its own quotes. A quote that is never closed is a letter.
    """
    words = []
    at = _after_blanks(line, 0)
    while at < len(line):
        word, at = _word(line, at)
        words.append(word)
        at = _after_blanks(line, at)
    return tuple(words)


def without_semicolon(line: str) -> tuple[str, bool]:
    """Return the line without the semicolon that ends it, and whether there was one."""
    stripped = line.rstrip()
    return (stripped[:-1], True) if stripped.endswith(";") else (line, False)


def _after_blanks(line: str, at: int) -> int:
    while at < len(line) and line[at].isspace():
        at += 1
    return at


def _word(line: str, at: int) -> tuple[Token, int]:
    flag = _FLAG_VALUE.match(line, at)
    start = flag.end() if flag else at
    if line[start] in "\"'":
        closing = _closing_quote(line, start)
        if closing is not None:
            word = Token(line[start + 1 : closing], quote=line[start], start=at)
            return replace(word, flag=flag.group()[:-1]) if flag else word, closing + 1
    end = _end_of_bare_word(line, at)
    return Token(line[at:end], start=at), end


def _closing_quote(line: str, opening: int, also_before: str = "") -> int | None:
    """Return the position of the quote that closes the one at a position: the first followed by a blank or the end."""
    at = line.find(line[opening], opening + 1)
    while at != -1 and at + 1 < len(line) and not (line[at + 1].isspace() or line[at + 1] in also_before):
        at = line.find(line[opening], at + 1)
    return None if at == -1 else at


def _end_of_bare_word(line: str, start: int) -> int:
    at = start
    while at < len(line) and not line[at].isspace():
        at = _after_group(line, at, start)
    return at


def _after_group(line: str, at: int, start: int) -> int:
    """Return the position behind a letter, or behind the group in braces or quotes that it opens.

    Quotes inside a word group only in lists and pairs, as in `"order id",amount` and `dt="2026 01"`; they stay
    in the word.
    """
    closing: int | None = None
    if line[at] == "{":
        closing = line.find("}", at)
    elif line[at] in "\"'" and (at == start or line[at - 1] in "=,"):
        closing = _closing_quote(line, at, also_before=",")
    return (at if closing is None or closing == -1 else closing) + 1
