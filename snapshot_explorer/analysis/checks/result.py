"""`CheckResult`: the results of rules as text, HTML, JSON, Markdown and JUnit XML, with an exit status."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass
from html import escape
from typing import TYPE_CHECKING, Literal
from xml.etree import ElementTree as ET

import orjson
import pyarrow as pa

from snapshot_explorer.core import frames
from snapshot_explorer.core.safe_text import sanitize, sanitize_json
from snapshot_explorer.core.shown import Shown
from snapshot_explorer.core.text import format_utc, pluralize
from snapshot_explorer.results import Frame

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

State = Literal["passed", "failed"]
_ORDER: tuple[State | None, ...] = ("failed", None, "passed")
_NOT_CHECKED = "not checked"
_WORDS: dict[State | None, str] = {"failed": "failed", None: _NOT_CHECKED, "passed": "passed"}
_MARKDOWN = str.maketrans({letter: f"\\{letter}" for letter in "\\`*_{}[]()#+-!|~"} | {"@": "&#64;", "\n": " "})
_MOST_LINES = 200
"""The lines of a Markdown text: a comment on a pull request has at most 65,536 characters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckLine:
    """The result of a rule for a table."""

    table: str
    rule: str
    """The name of the rule, or its condition."""
    state: State | None
    """None if it could not be evaluated."""
    found: str
    """A sentence on the result, or on why the rule could not be evaluated."""
    version: int | None = None
    """The newest version that the sentence is about."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class CheckResult(Shown):
    """The results of rules. Draws itself: rules that fail first, then rules that could not be evaluated."""

    name: str
    """The table, or the lake."""
    since: datetime
    """Commits from this time on were judged."""
    at: datetime
    """The time of the check."""
    lines: tuple[CheckLine, ...]
    """A line for each table and rule."""

    @property
    def failed(self) -> tuple[CheckLine, ...]:
        """The lines of rules that fail."""
        return self._of_state("failed")

    @property
    def not_checked(self) -> tuple[CheckLine, ...]:
        """The lines of rules that could not be evaluated. They did not pass."""
        return self._of_state(None)

    @property
    def is_ok(self) -> bool:
        """Whether every rule was evaluated, and none fails."""
        return not self.exit_code

    @property
    def exit_code(self) -> int:
        """0 if all rules passed, 1 if one fails, 2 if none fails and one could not be evaluated."""
        return 1 if self.failed else 2 if self.not_checked or not self.lines else 0

    @property
    def call(self) -> str:
        """The Python that returns the result, of a table or a lake in a variable."""
        rules = list(dict.fromkeys(line.rule for line in self.lines))
        return f"check({rules!r}, since={self.since.isoformat()!r}, at={self.at.isoformat()!r})"

    @property
    def verdict(self) -> str:
        """The result in a sentence."""
        counts = Counter(line.state for line in self.lines)
        parts = [f"{counts[state]:,} {_WORDS[state]}" for state in _ORDER if counts[state]]
        tables = len({line.table for line in self.lines})
        of = f" of {pluralize(tables, 'table')}" if tables > 1 else ""
        return f"{pluralize(len(self.lines), 'check')}{of}: {', '.join(parts) or 'nothing to check'}"

    @property
    def frame(self) -> Frame:
        """Return CHECKED: a row for each table and rule, failed rules first."""
        return Frame(self._rows(self.sorted_lines), title=f"Checks of {self.name}", noun="checks")

    def to_dict(self) -> dict[str, object]:
        """Return the result as a dict: name, since, at, exit_code, the number of lines of each state, and the lines."""
        counts = Counter(line.state for line in self.lines)
        return {
            "name": self.name,
            "since": self.since,
            "at": self.at,
            "exit_code": self.exit_code,
            **{_WORDS[state].replace(" ", "_"): counts[state] for state in _ORDER},
            "checks": [asdict(line) | {"state": _WORDS[line.state]} for line in self.sorted_lines],
        }

    def to_json(self) -> str:
        """Return `to_dict` as JSON text."""
        return sanitize_json(orjson.dumps(self.to_dict(), option=orjson.OPT_INDENT_2 | orjson.OPT_UTC_Z).decode())

    def to_markdown(self) -> str:
        """Return the result as Markdown, such as for a comment on a pull request; passed checks are folded."""
        sign = {0: "\N{WHITE HEAVY CHECK MARK}", 1: "\N{CROSS MARK}"}.get(self.exit_code, "\N{WARNING SIGN}\ufe0f")
        lines = [f"### {sign} {_markdown(self.name)}: {self.verdict}", "", self.window, ""]
        open_lines = [line for line in self.sorted_lines if line.state != "passed"]
        passed = [line for line in self.sorted_lines if line.state == "passed"]
        if open_lines:
            lines += [*_markdown_table(open_lines), ""]
        if passed:
            lines += [f"<details><summary>{pluralize(len(passed), 'check')} passed</summary>", ""]
            lines += [*_markdown_table(passed[: max(1, _MOST_LINES - len(open_lines))]), "", "</details>", ""]
        return "\n".join(lines)

    def to_junit(self) -> str:
        """Return the result as JUnit XML: a suite for each table, a case for each rule.

        A rule that fails is a failure; a rule that could not be evaluated is an error.
        """
        root = ET.Element("testsuites")
        by_table: dict[str, list[CheckLine]] = {}
        for line in self.lines:
            by_table.setdefault(line.table, []).append(line)
        for index, (table, own) in enumerate(by_table.items()):
            suite = ET.SubElement(
                root,
                "testsuite",
                name=_xml(table),
                package=_xml(self.name),
                id=str(index),
                hostname="localhost",
                timestamp=self.at.strftime("%Y-%m-%dT%H:%M:%S"),
                tests=str(len(own)),
                failures=str(sum(line.state == "failed" for line in own)),
                errors=str(sum(line.state is None for line in own)),
                time="0",
            )
            ET.SubElement(suite, "properties")
            for line in own:
                case = ET.SubElement(suite, "testcase", name=_xml(line.rule), classname=_xml(table), time="0")
                if line.state != "passed":
                    tag = "failure" if line.state == "failed" else "error"
                    outcome = _xml(line.found)
                    ET.SubElement(case, tag, type=_WORDS[line.state], message=outcome).text = outcome
            for tag in ("system-out", "system-err"):
                ET.SubElement(suite, tag)
        ET.indent(root)
        return f'<?xml version="1.0" encoding="UTF-8"?>\n{ET.tostring(root, encoding="unicode")}\n'

    @property
    def window(self) -> str:
        """The period of the commits that were judged, as a sentence."""
        return f"Commits since {format_utc(self.since)}, judged at {format_utc(self.at)}."

    @property
    def sorted_lines(self) -> Sequence[CheckLine]:
        """The lines of rules that fail, of rules that could not be evaluated, and of rules that pass."""
        return sorted(self.lines, key=lambda line: _ORDER.index(line.state))

    def _of_state(self, state: State | None) -> tuple[CheckLine, ...]:
        return tuple(line for line in self.lines if line.state == state)

    @staticmethod
    def _rows(lines: Sequence[CheckLine]) -> pa.Table:
        return pa.Table.from_pylist([asdict(line) for line in lines], frames.CHECKED)


def _markdown_table(lines: Sequence[CheckLine]) -> list[str]:
    rows = [
        f"| {_WORDS[line.state]} | {_markdown(line.table)} | {_markdown(line.rule)} | {_markdown(line.found)} |"
        for line in lines[:_MOST_LINES]
    ]
    more = len(lines) - _MOST_LINES
    cut_off = ["", f"and {pluralize(more, 'more check')}"] if more > 0 else []
    return ["| | table | rule | found |", "|---|---|---|---|", *rows, *cut_off]


def _markdown(content: str) -> str:
    """Return text that Markdown shows as it is: no markup, no HTML, no mention of anyone."""
    return escape(sanitize(content), quote=False).translate(_MARKDOWN)


def _xml(content: str) -> str:
    """Return text without the characters that XML cannot contain."""
    return sanitize(content)
