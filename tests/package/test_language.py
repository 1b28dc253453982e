"""The strings and docstrings of the package are plain technical English."""

import ast
import re
from pathlib import Path

import pytest

import snapshot_explorer

_PACKAGE = Path(snapshot_explorer.__file__).parent
_BANNED = {
    "makes no sense": "must be 0 or more, got -1",
    "can not": "cannot",
    "is told": "is returned, is passed",
    "heeds": "uses, applies",
    "is no ref": "is not a valid ref",
    "asked for name": "Unknown column",
    "for want of": "without",
    "as it were": "leave it out",
    "what is told": "what is returned",
    "nobody": "no writer, no reader",
    "are told": "are returned, are shown",
    "told apart": "distinguished",
    "tell apart": "distinguish",
    "does not tell": "does not record, does not contain",
    "gave back": "restored, returned",
    "gives back": "returns",
    "goes by": "is named, is matched by",
    "besides": "in addition to",
    "made anew": "recreated",
    "whoever": "a reader, a writer",
    "treat apart": "is not supported",
    "and the like": "and similar, such as",
    "can still be looked at": "is available",
    "there is nothing to be done": "nothing to do",
    "thereof": "of it",
    "came and went": "was live from version 3 to 7",
    "became of": "whether they exist, were removed",
    "let go of": "closes, stops observing",
    "what is to be said": "the message",
    "so to speak": "leave it out",
}


@pytest.fixture(scope="module")
def texts():
    return [
        (f"{path.relative_to(_PACKAGE)}:{node.lineno}", node.value)
        for path in sorted(_PACKAGE.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]


@pytest.mark.parametrize("phrase", _BANNED)
def test_no_text_of_the_package_contains_a_banned_phrase(texts, phrase):
    pattern = re.compile(r"\b" + r"\s+".join(map(re.escape, phrase.split())) + r"\b", re.IGNORECASE)

    found = [place for place, text in texts if pattern.search(text)]

    assert not found, f"Write for example: {_BANNED[phrase]}"
