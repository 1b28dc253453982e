"""The settings of a check: its rules and thresholds, from arguments and a TOML file."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, date, datetime
from fnmatch import fnmatchcase
from os import PathLike
from pathlib import Path
from typing import Any

from snapshot_explorer.analysis.checks.rules import DEFAULT_RULES, Rule, parse_rules
from snapshot_explorer.analysis.profile import AnomalyRules
from snapshot_explorer.core.errors import InvalidArgumentError
from snapshot_explorer.core.refs.grammar import parse_time_bound
from snapshot_explorer.core.refs.records import brief_repr
from snapshot_explorer.core.text import did_you_mean
from snapshot_explorer.history import Expectation, expectations_of

_KEYS = ("fail-on", "since", "key", "anomaly", "expected")
_SINCE = "1d"


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckSettings:
    """The rules, thresholds and period of a check."""

    rules: tuple[Rule, ...]
    since: datetime
    """Commits from this time on are checked, and compared with earlier ones."""
    at: datetime
    """The time of the check; later commits are ignored."""
    key: tuple[str, ...] | None = None
    """The columns that identify a row, for `duplicates`; None for the primary key, or all columns without one."""
    anomaly: AnomalyRules = field(default_factory=AnomalyRules)
    """The thresholds of jumps."""
    expected: tuple[Expectation, ...] = ()
    """The versions at which jumps, schema changes and missing files are expected, and fail no rule."""
    patterns: tuple[tuple[str, Mapping[str, Any]], ...] = ()
    """Other settings for tables whose names match; the first pattern that matches counts."""

    def of_table(self, name: str) -> "CheckSettings":
        """Return the settings of a table."""
        own = next((values for pattern, values in self.patterns if matches(name, pattern)), None)
        return self if own is None else _with(self, own)


def matches(name: str, pattern: str) -> bool:
    """Return whether the name of a table, or its last part, matches a pattern such as `shop/*` or `shop.*`."""
    return fnmatchcase(name, pattern) or fnmatchcase(name.rpartition("/")[2].rpartition(".")[2], pattern)


def check_settings(
    fail_on: str | Sequence[str] | None,
    *,
    since: str | datetime | None,
    at: str | datetime | None,
    key: str | Sequence[str] | None,
    config: str | PathLike[str] | Mapping[str, Any] | None,
) -> CheckSettings:
    """Return the settings that arguments and a TOML file state; arguments win over the file's settings for all tables.

    Raises:
        InvalidArgumentError: The file cannot be read or has an unknown key, or a value is not valid.
    """
    if not isinstance(config, Mapping | str | PathLike | None):
        raise InvalidArgumentError(f"config must be the path of a TOML file or a dict, got {brief_repr(config)}.")
    values = {} if config is None else dict(config) if isinstance(config, Mapping) else _read(config)
    tables = values.pop("tables", {})
    stated = {"fail-on": fail_on, "since": since, "key": key}
    values |= {name: value for name, value in stated.items() if value is not None}
    clock = datetime.now(UTC)
    now = clock if at is None else _time("at", at, clock)
    if now > clock:
        raise InvalidArgumentError(
            f"at, {now:%Y-%m-%d %H:%M} UTC, is in the future: what is committed until then is not known yet. It is "
            f"{clock:%Y-%m-%d %H:%M} UTC."
        )
    default = CheckSettings(rules=parse_rules(DEFAULT_RULES), since=_time("since", _SINCE, now), at=now)
    result = _with(default, values)
    if not isinstance(tables, Mapping) or not all(
        isinstance(name, str) and isinstance(own, Mapping) for name, own in tables.items()
    ):
        raise InvalidArgumentError('tables must have a part for each pattern, such as [tables."shop/*"].')
    for own in tables.values():
        _with(result, own)  # a mistake is an error now, and not only where a table matches
    return replace(result, patterns=tuple(tables.items()))


def _with(settings: CheckSettings, values: Mapping[str, Any]) -> CheckSettings:
    unknown = next((name for name in values if name not in _KEYS), None)
    if unknown is not None:
        raise InvalidArgumentError(
            f"There is no setting {brief_repr(unknown)}.{did_you_mean(unknown, _KEYS)} Settings: {', '.join(_KEYS)}, "
            "and tables with a part for each pattern."
        )
    if "fail-on" in values:
        settings = replace(settings, rules=parse_rules(values["fail-on"]))
    if "since" in values:
        settings = replace(settings, since=_time("since", values["since"], settings.at))
    if "key" in values:
        settings = replace(settings, key=_names(values["key"]))
    if "anomaly" in values:
        settings = replace(settings, anomaly=_thresholds(values["anomaly"], settings.anomaly))
    if "expected" in values:
        settings = replace(settings, expected=(*settings.expected, *expectations_of(values["expected"])))
    if settings.since > settings.at:
        raise InvalidArgumentError(
            f"since, {settings.since:%Y-%m-%d %H:%M} UTC, is after the time of the check, "
            f"{settings.at:%Y-%m-%d %H:%M} UTC."
        )
    return settings


def _read(config: str | PathLike[str]) -> dict[str, Any]:
    import tomllib  # noqa: PLC0415 - only where there is a file

    try:
        return tomllib.loads(Path(config).read_text(encoding="utf-8"))
    except OSError as error:
        raise InvalidArgumentError(f"The settings {config} cannot be read: {error.strerror}.") from error
    except ValueError as error:  # of TOML, of UTF-8, or of the path
        raise InvalidArgumentError(f"The settings {config} are not TOML: {error}.") from error
    except RecursionError:
        problem = f"The settings {config} have values within each other to too many levels. A rule needs two."
    raise InvalidArgumentError(problem)  # not above: the context would have a thousand frames


def _time(name: str, value: object, now: datetime) -> datetime:
    if isinstance(value, date) and not isinstance(value, datetime):
        value = value.isoformat()  # as TOML has it without quotes
    time = parse_time_bound(value, start=name == "since", now=now) if isinstance(value, str | datetime) else None
    if time is None:
        raise InvalidArgumentError(
            f"{name} must be a time such as 1d, yesterday or 2026-11-01, got {brief_repr(value)}."
        )
    return time


def _names(value: object) -> tuple[str, ...]:
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, list | tuple) or not names or not all(isinstance(name, str) for name in names):
        raise InvalidArgumentError(f"key must be the names of columns, such as ['order_id'], got {brief_repr(value)}.")
    return tuple(names)


def _thresholds(values: object, rules: AnomalyRules) -> AnomalyRules:
    known = [threshold.name for threshold in fields(AnomalyRules)]
    unknown = next((name for name in values if name not in known), None) if isinstance(values, Mapping) else values
    if not isinstance(values, Mapping) or unknown is not None:
        raise InvalidArgumentError(f"anomaly has no threshold {brief_repr(unknown)}. Thresholds: {', '.join(known)}.")
    return replace(rules, **values)
