"""`Mask`, which finds known secrets in the texts of libraries and servers, however they are encoded there."""

import base64
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cached_property
from html import unescape
from types import FunctionType, ModuleType
from typing import Any, NamedTuple
from urllib.parse import unquote

from snapshot_explorer.core.url_secrets import is_secret_name, split_url

_SHORTEST_SECRET = 4
_LONGEST_SECRET = 2**14
"""The length up to which a value is a secret; a private key has some 3,000 letters, and a file much more."""
_SHORTEST_VARIABLE = 8
_SHORTEST_WORD = 8
"""The length from which a word of an option with several, such as `Bearer abc`, is a secret of its own."""
_SHORTEST_SPLIT = 12
"""The length from which a secret is found with blanks between its letters; a shorter one might be an ordinary word."""
_SHORTEST_ENCODED = 4
"""The minimum number of letters in base64 that are searched for."""
_SHORTEST_DECODED = 3
_SECRET_VARIABLES = re.compile(r"KEY|SECRET|TOKEN|PASSW|CREDENTIAL|SAS\b|CONNECTION_STRING|ACCOUNT_KEY", re.IGNORECASE)
"""Names of environment variables that contain secrets of any storage."""
_URL = re.compile(r"\s*([A-Za-z][A-Za-z0-9+.\-]*)://(.*)", re.DOTALL)
_PAIRS = re.compile(r"[;&?\s,]+")
_MAX_DEPTH = 8
"""The depth to which options are searched."""
_MAX_ROUNDS = 5
"""The maximum number of times that a text may be encoded."""
_MAX_TEXT = 2**16
"""The maximum number of letters of a text that are searched. The rest is never shown."""
_ESCAPE = re.compile(
    r"(?P<url>(?:%[0-9A-Fa-f]{2})+)"
    r"|(?P<xml>&(?:\#[0-9]{1,7}|\#[xX][0-9A-Fa-f]{1,6}|[A-Za-z]{2,8});?)"
    r"|\\(?:u(?P<u>[0-9A-Fa-f]{4})|U(?P<U>[0-9A-Fa-f]{8})|x(?P<x>[0-9A-Fa-f]{2})|(?P<octal>[0-7]{3}))"
    r"|(?P<line>[ \t]*(?:\\?(?:\r\n|[\r\n\v\f\x85\u2028\u2029]|\\r\\n|\\n|\\r)[ \t]*)+)|(?P<equals>=)"
    r"|\\(?P<letter>.)",
    re.DOTALL,
)
"""A letter as URLs, XML, JSON and Python escape it, or the end of a line, which may be inside a secret.

An equals sign too, which some encodings write before the end of a line."""
_PADDING = re.compile(r"(?:\s*=){1,2}")
_BASE64 = re.compile(r"[A-Za-z0-9/_\-]")


class Mask:
    """Removes secrets from text: storage options, hidden parts of the location, and environment secrets.

    A server may repeat a secret quoted for a URL, escaped for XML or JSON, in base64 or hexadecimal digits, in capital
    letters, or broken over several lines. All of these are found, also one within the other.
    """

    def __init__(self, options: Mapping[str, Any], hidden: Iterable[str]) -> None:
        texts = (word for word in (*_option_values(options), *hidden) if len(word) <= _LONGEST_SECRET)
        words = {word for word in texts if len(word.strip()) >= _SHORTEST_SECRET}
        words |= set(_environment_secrets())
        self._words = frozenset(words)

    @cached_property
    def _secrets(self) -> re.Pattern[str]:
        """The pattern of the secrets in a decoded text."""
        plain = {_plain(word.strip()) for word in self._words}
        patterns = [
            _spelling_pattern(word) for word in sorted(plain, key=len, reverse=True) if len(word) >= _SHORTEST_DECODED
        ]
        return re.compile("|".join(patterns) or r"(?!)", re.IGNORECASE)

    @cached_property
    def _codes(self) -> re.Pattern[str]:
        """The secrets in base64 and in hexadecimal digits."""
        codes = {code for word in self._words for code in _encoded_patterns(word.strip())}
        return re.compile("|".join(sorted(codes, key=len, reverse=True)) or r"(?!)", re.IGNORECASE)

    def __repr__(self) -> str:
        return f"Mask({len(self._words)} hidden)"

    def has_secret(self, text: str) -> bool:
        """Return whether the text contains a secret, or is too long to be searched."""
        if len(text) > _MAX_TEXT:
            return True
        return next(self._find_secrets(text), None) is not None

    def __call__(self, text: str) -> str:
        """Return the text with `***` for each secret; the beginning of a very long one."""
        is_cut = len(text) > _MAX_TEXT
        text = text[:_MAX_TEXT]
        parts, end = [], 0
        for first, last in sorted(self._find_secrets(text)):
            if last > end:
                parts += [text[end:first], "***"]
                end = last
        # The end of a truncated text may be the beginning of a secret.
        return "".join([*parts, text[end : -_MAX_TEXT // 4] if is_cut else text[end:]])

    def _find_secrets(self, text: str) -> Iterator[tuple[int, int]]:
        """Yield where secrets begin and end in a text."""
        plain = _plain(text)
        if not (self._secrets.search(plain) or self._codes.search(plain)):
            return  # computing the position of each letter takes long
        decoded = _decode(text)
        for match in self._secrets.finditer(decoded.text):
            yield decoded.starts[match.start()], _end(text, decoded.ends[match.end() - 1])
        for match in self._codes.finditer(decoded.text):
            first, last = match.span()
            while first and _BASE64.match(decoded.text, first - 1):
                first -= 1
            while last < len(decoded.text) and _BASE64.match(decoded.text, last):
                last += 1
            yield decoded.starts[first], _end(text, decoded.ends[last - 1])


def _end(text: str, end: int) -> int:
    """Return the end of a secret, including the equals signs after it."""
    padding = _PADDING.match(text, end)
    return padding.end() if padding else end


class _Decoded(NamedTuple):
    """A text without escapes and ends of lines."""

    text: str
    starts: "range | list[int]"
    """The start of each letter in the original text."""
    ends: "range | list[int]"
    """The end of each letter in the original text."""


def _plain(text: str) -> str:
    """Return a text decoded until nothing is left to decode, with `+` as a blank, as in the queries of URLs.

    Ends of lines and equals signs are left out, of secrets and of texts alike.
    """
    for _ in range(_MAX_ROUNDS):
        following = _ESCAPE.sub(lambda match: "".join(letter for letter, _, _ in _letters(match)), text)
        if following == text:
            break
        text = following
    return text.replace("+", " ")


def _decode(text: str) -> _Decoded:
    """Return the result of `_plain` with the original position of each letter."""
    result = _Decoded(text, range(len(text)), range(1, len(text) + 1))
    for _ in range(_MAX_ROUNDS):
        following = _decode_once(result)
        if following is None:
            break
        result = following
    return result._replace(text=result.text.replace("+", " "))


def _decode_once(text: _Decoded) -> _Decoded | None:
    """Return a text with each escape decoded once; None if it has none."""
    letters: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    done = 0
    for match in _ESCAPE.finditer(text.text):
        pieces = list(_letters(match))
        if "".join(letter for letter, _, _ in pieces) == match[0]:
            continue
        letters += text.text[done : match.start()]
        starts += text.starts[done : match.start()]
        ends += text.ends[done : match.start()]
        for letter, first, last in pieces:
            letters.append(letter)
            starts.append(text.starts[first])
            ends.append(text.ends[last - 1])
        done = match.end()
    if not done:
        return None
    letters += text.text[done:]
    return _Decoded("".join(letters), [*starts, *text.starts[done:]], [*ends, *text.ends[done:]])


def _letters(match: re.Match[str]) -> Iterator[tuple[str, int, int]]:
    """Yield the letters of an escape sequence with their start and end; nothing if the sequence is dropped."""
    start, end = match.span()
    if match["url"]:
        yield from _url_letters(match["url"], start)
    elif match["xml"]:
        yield from ((letter, start, end) for letter in unescape(match["xml"]))
    elif code := match["u"] or match["U"] or match["x"]:
        number = int(code, 16)
        yield chr(number) if number <= 0x10FFFF else "?", start, end  # noqa: PLR2004 - the last character
    elif match["octal"]:
        yield chr(int(match["octal"], 8)), start, end
    elif match["letter"]:
        yield match["letter"], start, end


def _url_letters(quoted: str, start: int) -> Iterator[tuple[str, int, int]]:
    content = bytes.fromhex(quoted.replace("%", ""))
    try:
        letters = content.decode()
    except UnicodeDecodeError:
        letters = content.decode("latin-1")
        sizes = [1] * len(letters)
    else:
        sizes = [len(letter.encode()) for letter in letters]
    for letter, size in zip(letters, sizes, strict=True):
        yield letter, start, start + 3 * size
        start += 3 * size


def _spelling_pattern(word: str) -> str:
    """Return the pattern of a secret in a text that was decoded."""
    if len(word) < _SHORTEST_SPLIT:
        return re.escape(word)
    return r"[ \t]*".join(re.escape(letter) for letter in word if letter not in " \t")


def _encoded_patterns(word: str) -> Iterator[str]:
    """Yield patterns of a secret in hexadecimal digits, and in base64 at any position in the encoded text."""
    for content in {word.encode("utf-8", "surrogatepass"), unquote(word).encode("utf-8", "surrogatepass")}:
        yield r"[ :\-]?".join(re.findall("..", content.hex()))
        for offset in range(3):
            code = base64.b64encode(b"\0" * offset + content).decode().rstrip("=")
            # The first and the last letter also contain bits of the text before and after the secret.
            known = code[-(-offset * 8 // 6) : (offset + len(content)) * 8 // 6]
            if len(known) >= _SHORTEST_ENCODED:
                yield "".join({"+": r"[ \-]", "/": "[/_]"}.get(letter, letter) for letter in known)


def has_values(options: Mapping[str, Any]) -> bool:
    """Return whether options have a value that may be a secret: text or a number."""
    return next(_option_values(options), None) is not None


def _option_values(value: object, depth: int = 0) -> Iterator[str]:
    """Yield every text in storage options, at any depth, and its parts; numbers too, which may be passwords."""
    if depth > _MAX_DEPTH or isinstance(value, bool | type | ModuleType | FunctionType):
        return
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, bytes | bytearray):
        value = bytes(value).decode("utf-8", "replace")
    if isinstance(value, list | tuple | set | frozenset):
        for item in value:
            yield from _option_values(item, depth + 1)
    elif isinstance(value, str):
        yield value
        yield from _parts(value, depth + 1)
    elif isinstance(value, int | float):
        yield str(value)
    else:  # an object with credentials; what is in other objects that it has is theirs
        members = getattr(value, "__dict__", {}).values()
        yield from _option_values([item for item in members if isinstance(item, str | bytes)], depth + 1)


def _parts(value: str, depth: int) -> Iterator[str]:
    """Yield the parts of an option that a server may repeat alone.

    They are the user and the password of a URL, the values of a connection string or a signature, what the JSON of a
    key contains, the lines of a private key, and the token after `Bearer`.
    """
    if url := _URL.fullmatch(value):
        yield from split_url(url[1], url[2], is_typed=True)[1]
        return
    if value.lstrip()[:1] in ("{", "["):
        with suppress(ValueError, RecursionError):
            yield from _option_values(json.loads(value), depth)
    for pair in _PAIRS.split(value):
        name, equals, rest = pair.partition("=")
        if equals and rest and is_secret_name(name):
            yield rest
        elif pair != value and len(pair) >= _SHORTEST_WORD and not pair.startswith("--"):
            yield pair


def _environment_secrets() -> Iterator[str]:
    """Yield the secrets in the environment. Short values are skipped, because they may be ordinary words."""
    for name, value in os.environ.items():
        # A path to a file of secrets is not a secret itself.
        if _SECRET_VARIABLES.search(name) and len(value) >= _SHORTEST_VARIABLE and not os.path.isabs(value):  # noqa: PTH117
            yield value
            yield from (part for part in _parts(value, 0) if len(part) >= _SHORTEST_VARIABLE)
        elif (url := _URL.fullmatch(value)) and "@" in value:
            # Such as HTTPS_PROXY, with a user and a password.
            yield from (part for part in split_url(url[1], url[2])[1] if len(part) >= _SHORTEST_SECRET)
