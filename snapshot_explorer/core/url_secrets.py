r"""The secrets of URLs: users, passwords, signatures and other parts that only their owner may see.

The only place that decides which part of a URL is shown. `hide_url_secrets` finds URLs anywhere in a text, such as the
log of a table or the error of a library; `split_url` is for a URL that is known to be one.
"""

import re
from html import unescape
from urllib.parse import unquote

HIDDEN = "..."
"""The text in place of a secret."""
_LOCAL = frozenset({"file", "local"})
"""Schemes of the local disk, where every character of a path is literal."""
_WEB = frozenset({"http", "https", "webdav", "webdavs", "dav", "davs", "hf"})
"""Schemes whose addresses end where a query, a fragment or parameters begin. Elsewhere `?`, `#` and `;` are letters."""
_CONTAINERS = frozenset({"abfs", "abfss", "az", "azure", "adl", "wasb", "wasbs"})
"""Schemes of Azure, which writes a container like a user: container@account."""
_KNOWN = (
    "https?|s3[an]?|gcs|gs|abfss?|az|wasbs?|adl|oss|cosn?|obs|tos|oci|hdfs|webhdfs|s?ftp|ssh|scp|smb|davs?|webdavs?|hf"
)
"""Schemes that are recognized although the slashes after them are missing, or the colon."""
_MOST_QUOTED = 3
"""How often a URL may be quoted for another one."""
_SLASH = r"(?:[/\\]|%(?:25)*(?:2F|5C))"
_COLON = r"(?::|%(?:25)*3A)"
_URL = re.compile(
    rf"""(?<![A-Za-z0-9+.\-])
    (?:(?P<scheme>[A-Za-z][A-Za-z0-9+.\-]+)(?P<after>{_COLON}{_SLASH}{{2,}})
      |(?P<known>{_KNOWN})(?P<wrong>\s?[:;]\s?{_SLASH}*|{_SLASH}{{2,}}|\s?{_COLON}{_SLASH}*))
    (?P<rest>[^\s"'<>`]+)""",
    re.IGNORECASE | re.VERBOSE,
)
"""A URL in a text, even if it is quoted for another URL, escaped for JSON, or mistyped."""
_NAMES = (
    r"[\w.\-]{0,40}(?:sig|signature|token|secret|passw(?:or)?d|passphrase|pwd|credentials?|api[_\-]?key|access[_\-]?key"
    r"|account[_\-]?key|shared[_\-]?key|access[_\-]?key[_\-]?id|authorization|jwt|sas)"
)
_SECRET_VALUE = re.compile(
    rf"(?P<name>(?:[?&;#]|%(?:25)*(?:3F|26|3B|23)|\\u00(?:3f|26|3b|23))(?:amp;|\#?\w{{1,6}};)?{_NAMES}"
    rf"(?:=|%(?:25)*3D|\\u003d))(?P<value>[^&;#\s\"'<>`\\]+)",
    re.IGNORECASE,
)
"""A secret by its name, wherever a query may be."""
_PORT = re.compile(r"\d{0,5}(?:[/\\?#;]|$)")
_WEB_QUERY = re.compile(r"[?#;].+", re.DOTALL)
_KEY_QUERY = re.compile(r"\?[^?/]*=.*", re.DOTALL)
"""Text that looks like a query where `?` may be a letter of a name."""
_TYPED_QUERY = re.compile(r"[?#;][^?#;/]*=.*|\?[^?/]+$", re.DOTALL)
"""The same in a location that a user typed, which is only displayed."""
_TYPED_USER = re.compile(r"(?<![^\s/\\:@'\"])[^\s/\\:@'\"]+:(?!\d{0,5}(?:[/\\?#;]|$))")
"""A user without a scheme before it. The password follows, up to `@`."""
_SIGN = re.compile(r"[@?#;&]|%(?:25)*(?:40|3F|23|3B|26)|\\u00", re.IGNORECASE)
"""A character without which a text has no secret of a URL."""


def is_secret_name(name: str) -> bool:
    """Return whether the value of a parameter or a setting with this name is a secret."""
    return re.fullmatch(_NAMES, name.strip(), re.IGNORECASE) is not None


def hide_url_secrets(text: str) -> str:
    """Return a text with `...` in place of the users, passwords, queries and signatures in its URLs."""
    if _SIGN.search(text) is None:
        return text
    return _SECRET_VALUE.sub(rf"\g<name>{HIDDEN}", _URL.sub(_shown_url, text))


def hide_typed_secrets(location: str) -> str:
    """Return a location as a user typed it, without its secrets, even if it is not a valid URL."""
    shown = hide_url_secrets(location)
    before, _, host = shown.rpartition("@")
    user = _TYPED_USER.search(before)
    return shown if user is None else before[: user.start()] + host


def _shown_url(match: re.Match[str]) -> str:
    scheme, rest = match["scheme"] or match["known"], match["rest"]
    shown, hidden = split_url(scheme, rest)
    if not hidden and ("%" in rest or "&" in rest):
        # Quoted for another URL, or escaped for HTML: it is only unquoted if it has a secret.
        plain = rest
        for _ in range(_MOST_QUOTED):
            plain = unquote(unescape(plain))
        if _without_user(scheme.lower(), plain)[0] or (scheme.lower() in _WEB and _WEB_QUERY.search(plain)):
            shown = split_url(scheme, plain)[0]
    return match[0][: len(match[0]) - len(rest)] + shown


def split_url(scheme: str, rest: str, *, is_typed: bool = False) -> tuple[str, tuple[str, ...]]:
    """Return the shown part of a URL after its scheme and `://`, and its secret parts, longest first.

    If the password has a `/`, `?` or `#` that is not quoted, everything before the last `@` is hidden.

    Args:
        is_typed: Whether a user typed it as a location, not the writer of a table: more may be a secret.
    """
    family = scheme.lower()
    if family in _LOCAL:
        return rest, ()
    user, shown = _without_user(family, rest)
    pattern = _WEB_QUERY if family in _WEB else _TYPED_QUERY if is_typed else _KEY_QUERY
    match = pattern.search(shown)
    query = shown[match.start() :] if match else ""
    if query:
        shown = shown[: -len(query)] + query[0] + HIDDEN
    hidden = {user, *user.split(":"), query, *re.split(r"[?&;#=]", query)} - {""}
    return shown, tuple(sorted(hidden, key=len, reverse=True))


def _without_user(family: str, rest: str) -> tuple[str, str]:
    """Return the user and password of a URL, and the rest of it."""
    slashes = rest[: len(rest) - len(rest.lstrip("/\\"))]
    rest = rest[len(slashes) :]
    authority = re.split(r"[/\\?#]", rest, maxsplit=1)[0]
    user, at, _ = authority.rpartition("@")
    if at and not (family in _CONTAINERS and ":" not in user):
        return user, slashes + rest[len(user) + 1 :]
    name, colon, _ = authority.partition(":")
    if not at and colon and not name.startswith("[") and not _PORT.match(rest[len(name) + 1 :]):
        user, at, host = rest.rpartition("@")
        return (user, slashes + host) if at else ("", slashes + rest)
    return "", slashes + rest
