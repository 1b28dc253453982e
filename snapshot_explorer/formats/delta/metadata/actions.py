"""Parser for commits: lines of JSON, decoded into Arrow columns.

Source: delta PROTOCOL.md, "Actions".
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import orjson
import pyarrow as pa

from snapshot_explorer.arrow.arrays import array, empty_table
from snapshot_explorer.arrow.corruption import CorruptBytesError
from snapshot_explorer.core.errors import CorruptTableError, LimitError
from snapshot_explorer.core.limits import DEFAULT, Limits
from snapshot_explorer.formats import json_text
from snapshot_explorer.formats.delta.metadata import json_columns as columns
from snapshot_explorer.formats.delta.metadata.json_columns import ActionColumns, RowError, integer, show_value
from snapshot_explorer.formats.delta.metadata.locations import decode_paths
from snapshot_explorer.formats.delta.metadata.records import (
    ADDS,
    CDC,
    REMOVES,
    Actions,
    Domain,
    Metadata,
    Protocol,
    Transaction,
)

_AT_ONCE = 2_000
"""File actions whose values are Python objects at the same time."""
_TAKEN_AT_ONCE = 100
"""File actions that are Python objects at the same time: more would not fit the processor's cache."""
_FILES = ("add", "remove", "cdc")
_WANTED = frozenset(
    {
        *("path", "partitionValues", "size", "dataChange", "deletionVector", "stats", "baseRowId"),
        *("defaultRowCommitVersion", "tags", "modificationTime", "clusteringProvider", "deletionTimestamp"),
        "extendedFileMetadata",
    }
)
_MAPS = frozenset({"partitionValues", "tags"})
_BRIEF = ("operation", "userName", "userId", "inCommitTimestamp", "timestamp")
_MODES = ("mode", "outputMode")

T = TypeVar("T")


def parse_commits(
    contents: Iterable[tuple[int, str, bytes]],
    *,
    infos: bool = True,
    excerpts: bool = False,
    limits: Limits = DEFAULT,
) -> Actions:
    """Return the actions of commits, each kind in one table, in the order of the commits and of their lines.

    Args:
        contents: Version, file name and bytes of each commit, ascending.
        infos: Whether to keep each version's first commitInfo as a whole; otherwise only its `brief_info`.
        excerpts: Whether the bytes are some lines of each commit, maybe without an action of a known kind.
        limits: Limits per file.
    """
    parser = Parser(infos=infos, excerpts=excerpts, limits=limits)
    for version, name, content in contents:
        parser.feed(version, name, content)
    return parser.actions()


class Parser:
    """Parses the bytes of commits, or of a checkpoint in JSON, into actions."""

    def __init__(self, *, infos: bool = True, excerpts: bool = False, limits: Limits = DEFAULT) -> None:
        self._infos = infos
        self._excerpts = excerpts
        self._limits = limits
        self._pending: dict[str, list[Any]] = {kind: [] for kind in _FILES}
        self._waiting = {kind: ActionColumns(_WANTED, _MAPS) for kind in _FILES}
        self._owners: dict[str, list[tuple[int, int | None, str]]] = {kind: [] for kind in _FILES}
        self._tables: dict[str, list[pa.Table]] = {kind: [] for kind in _FILES}
        self._commit_infos: dict[int, Mapping[str, Any]] = {}
        self._protocols: dict[int, Protocol] = {}
        self._metadatas: dict[int, Metadata] = {}
        self._transactions: dict[int, tuple[Transaction, ...]] = {}
        self._domains: dict[int, tuple[Domain, ...]] = {}
        self.non_file_actions: list[tuple[str, Mapping[str, Any]]] = []
        """The other actions of a checkpoint, as stored, each with its kind."""

    def feed(self, version: int | None, name: str, content: bytes) -> None:
        """Parse a file. `version` is None for a checkpoint, whose actions come from unknown commits."""
        # Most lines of an excerpt are blank; the whole file was within limits.
        lines = content.split(b"\n") if self._excerpts else json_text.lines(content, name, self._limits)
        adds, others = _by_kind(name, content, lines)
        if not adds and not self._excerpts and _KNOWN.isdisjoint(others):
            raise without_actions(name, content)
        if adds:
            self._take("add", adds, version, name)
        if not others:
            return
        for kind in ("remove", "cdc"):
            if kind in others:
                self._take(kind, others.pop(kind), version, name)
        try:
            self._keep(version, others)
        except CorruptBytesError as error:
            message = f"{name} is damaged: it contains {error}. Restore the file from a backup."
            raise CorruptTableError(message) from error

    def actions(self) -> Actions:
        """Return the parsed actions; of a checkpoint only file actions."""
        for kind in _FILES:
            self._flush(kind)
        return Actions(
            adds=_together(self._tables["add"], ADDS),
            removes=_together(self._tables["remove"], REMOVES),
            cdc=_together(self._tables["cdc"], CDC),
            commit_infos=self._commit_infos,
            protocols=self._protocols,
            metadatas=self._metadatas,
            transactions=self._transactions,
            domains=self._domains,
        )

    def _keep(self, version: int | None, others: Mapping[str, list[Any]]) -> None:
        for kind, bodies in others.items():
            if kind in _SINGLE and not {dict}.issuperset(map(type, bodies)):
                raise CorruptBytesError(f"a {kind} that is not an object")
        if version is None:
            self.non_file_actions += [(kind, body) for kind, bodies in others.items() for body in bodies]
            return
        if "commitInfo" in others:
            info = others["commitInfo"][0]
            self._commit_infos[version] = info if self._infos else brief_info(info)
        if "protocol" in others:
            self._protocols[version] = _single_action("protocol", others["protocol"], protocol_of)
        if "metaData" in others:
            self._metadatas[version] = _single_action("metaData", others["metaData"], metadata_of)
        if "txn" in others:
            self._transactions[version] = tuple(transaction_of(body) for body in others["txn"])
        if "domainMetadata" in others:
            self._domains[version] = tuple(domain_of(body) for body in others["domainMetadata"])

    def _take(self, kind: str, bodies: Sequence[Any], version: int | None, name: str) -> None:
        waiting, pending, owners = self._waiting[kind], self._pending[kind], self._owners[kind]
        pending.extend(bodies)
        owners.append((len(waiting) + len(pending), version, name))
        if len(pending) >= _TAKEN_AT_ONCE:
            self._take_apart(kind)
            if len(waiting) >= _AT_ONCE:
                self._flush(kind)

    def _take_apart(self, kind: str) -> None:
        pending = self._pending[kind]
        try:
            self._waiting[kind].take(pending)
        except RowError as error:
            raise _broken_action(self._owners[kind], kind, error) from error
        pending.clear()

    def _flush(self, kind: str) -> None:
        self._take_apart(kind)
        bodies, owners = self._waiting[kind], self._owners[kind]
        if len(bodies):
            try:
                self._tables[kind].append(_MAKERS[kind](bodies, _versions(owners)))
            except RowError as error:
                raise _broken_action(owners, kind, error) from error
        self._waiting[kind] = ActionColumns(_WANTED, _MAPS)
        owners.clear()


_SINGLE = frozenset({"commitInfo", "protocol", "metaData", "txn", "domainMetadata", "sidecar"})
_KNOWN = _SINGLE | {*_FILES, "checkpointMetadata"}
"""Unknown actions are skipped, but no writer creates a file with nothing else: it may be the JSON of a proxy."""


def _by_kind(name: str, content: bytes, lines: list[bytes]) -> tuple[list[Any], dict[str, list[Any]]]:
    """Return the bodies of the add actions in a file, and the bodies of all other actions by their kind."""
    others: dict[str, list[Any]] = {}
    try:
        # Most lines are adds, which are parsed in one pass.
        actions = _parse(lines)
        adds = [body for item in actions if (body := item.get("add")) is not None]
        for action in [item for item in actions if "add" not in item or len(item) > 1]:
            for kind, body in action.items():
                if body is not None and kind != "add":
                    others.setdefault(kind, []).append(body)
    except (orjson.JSONDecodeError, AttributeError) as error:
        raise broken_line(name, content, error) from error
    return adds, others


def _parse(lines: list[bytes]) -> list[Any]:
    try:
        return list(map(orjson.loads, filter(None, lines)))
    except orjson.JSONDecodeError:
        # Checking each line for blanks is slower than handling the failure.
        return list(map(orjson.loads, filter(bytes.strip, lines)))


def brief_info(info: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what a commitInfo has on the operation, its mode, the user and the time, as stored."""
    parameters = info.get("operationParameters")
    modes = {name: parameters[name] for name in _MODES if name in parameters} if isinstance(parameters, dict) else {}
    return {name: info[name] for name in _BRIEF if name in info} | {"operationParameters": modes}


def _single_action(kind: str, bodies: Sequence[Mapping[str, Any]], make: Callable[[Mapping[str, Any]], T]) -> T:
    """Return the record of the only action of its kind; two different actions are an error."""
    try:
        differ = any(body != bodies[0] for body in bodies[1:])
    except RecursionError:  # nested too deeply for a parser, so no writer created it
        differ = True
    if differ:
        raise CorruptBytesError(f"two {kind} actions that differ")
    return make(bodies[0])


def _broken_action(owners: Sequence[tuple[int, int | None, str]], kind: str, error: RowError) -> CorruptTableError:
    name = next(name for end, _, name in owners if error.row < end)
    return CorruptTableError(
        f"{name} is damaged: one of its {kind} actions has {error}. Restore the file from a backup."
    )


def _versions(owners: Sequence[tuple[int, int | None, str]]) -> pa.Array:
    versions: list[int | None] = []
    for end, version, _ in owners:
        versions += [version] * (end - len(versions))
    return array(versions, pa.int64())


def _file_columns(bodies: ActionColumns, versions: pa.Array, *, or_empty: bool) -> list[pa.Array]:
    return [
        versions,
        columns.texts(bodies, "path", required=True, convert=decode_paths),
        columns.maps(bodies, "partitionValues", or_empty=or_empty),
        columns.integers(bodies, "size"),
        columns.booleans(bodies, "dataChange", default=True),
    ]


def _state_columns(bodies: ActionColumns) -> list[pa.Array]:
    return [
        columns.vectors(bodies),
        columns.texts(bodies, "stats"),
        columns.integers(bodies, "baseRowId"),
        columns.integers(bodies, "defaultRowCommitVersion"),
        columns.maps(bodies, "tags"),
    ]


def _adds(bodies: ActionColumns, versions: pa.Array) -> pa.Table:
    arrays = [
        *_file_columns(bodies, versions, or_empty=True),
        *_state_columns(bodies),
        columns.integers(bodies, "modificationTime"),
        columns.texts(bodies, "clusteringProvider"),
    ]
    return pa.table(arrays, schema=ADDS)


def _removes(bodies: ActionColumns, versions: pa.Array) -> pa.Table:
    arrays = [
        *_file_columns(bodies, versions, or_empty=False),
        *_state_columns(bodies),
        columns.integers(bodies, "deletionTimestamp"),
        columns.booleans(bodies, "extendedFileMetadata"),
    ]
    return pa.table(arrays, schema=REMOVES)


def _cdc(bodies: ActionColumns, versions: pa.Array) -> pa.Table:
    return pa.table(_file_columns(bodies, versions, or_empty=True), schema=CDC)


_MAKERS: Mapping[str, Callable[[ActionColumns, pa.Array], pa.Table]] = {"add": _adds, "remove": _removes, "cdc": _cdc}


def _together(tables: Sequence[pa.Table], schema: pa.Schema) -> pa.Table:
    return pa.concat_tables(tables) if tables else empty_table(schema)


def check_is_commit(name: str, content: bytes) -> None:
    """Check the first and last byte of a commit, for callers that read only some of its lines."""
    text = content.strip()
    if text[:1] != b"{" or text[-1:] != b"}":
        raise without_actions(name, content) if not text else broken_line(name, content, ValueError("it is not JSON"))


def without_actions(name: str, content: bytes) -> CorruptTableError:
    """Return the error for a commit, or a checkpoint in JSON, without actions."""
    problem = (
        "it contains no action of a known kind" if content.strip() else "it is empty" if not content else "it is blank"
    )
    return CorruptTableError(
        f"{name} is damaged: {problem}, and no writer makes such a file. It may have been cut short or overwritten, or "
        "another server may have answered in place of the storage. Try again; if that does not help, restore the file "
        "from a backup."
    )


def broken_line(name: str, content: bytes, error: Exception) -> CorruptTableError | LimitError:
    """Return the error for a file with a line that is not a JSON object, with the line's number."""
    for number, line in enumerate(content.split(b"\n"), 1):
        if not line or line.isspace():
            continue
        try:
            if isinstance(orjson.loads(line), dict):
                continue
            why = "it is not an object"
        except orjson.JSONDecodeError as syntax_error:
            if failure := json_text.too_deep(line, f"Line {number} of {name}"):
                return failure
            why = str(syntax_error)
        return CorruptTableError(
            f"{name} is damaged: line {number} is not an action: {why}. "
            "The file may be cut short; restore it from a backup."
        )
    return CorruptTableError(f"{name} is damaged: {error}. Restore the file from a backup.")


Body = Mapping[str, Any]


def protocol_of(body: Body) -> Protocol:
    """Return the record of a protocol action.

    Raises:
        CorruptBytesError: It lacks a version, or its features are not texts.

    Source: delta PROTOCOL.md, "Protocol Evolution".
    """
    reader, writer = (_integer(body, name) for name in ("minReaderVersion", "minWriterVersion"))
    if reader is None or writer is None:
        raise CorruptBytesError("a protocol without minReaderVersion or minWriterVersion")
    features = (body.get(name) for name in ("readerFeatures", "writerFeatures"))
    readers, writers = (None if names is None else frozenset(_texts(names, "features")) for names in features)
    return Protocol(
        min_reader_version=reader, min_writer_version=writer, reader_features=readers, writer_features=writers
    )


def metadata_of(body: Body) -> Metadata:
    """Return the record of a metaData action. Missing values are None or empty, as in old logs.

    Raises:
        CorruptBytesError: A value has a wrong type.

    Source: delta PROTOCOL.md, "Change Metadata".
    """
    file_format = body.get("format") or {}
    if not isinstance(file_format, Mapping):
        raise CorruptBytesError("a format that is not an object")
    return Metadata(
        id=_text(body, "id"),
        name=_text(body, "name"),
        description=_text(body, "description"),
        provider=_text(file_format, "provider") or "parquet",
        schema_json=_text(body, "schemaString"),
        partition_columns=tuple(_texts(body.get("partitionColumns") or [], "partitionColumns")),
        configuration=_configuration(body.get("configuration") or {}),
        created_at=_integer(body, "createdTime"),
    )


def transaction_of(body: Body) -> Transaction:
    """Return the record of a txn action.

    Raises:
        CorruptBytesError: It lacks the application or its version.
    """
    app_id, version = _text(body, "appId"), _integer(body, "version")
    if app_id is None or version is None:
        raise CorruptBytesError("a txn without appId or version")
    return Transaction(app_id=app_id, version=version, last_updated=_integer(body, "lastUpdated"))


def domain_of(body: Body) -> Domain:
    """Return the record of a domainMetadata action.

    Raises:
        CorruptBytesError: It lacks the domain.
    """
    name = _text(body, "domain")
    if name is None:
        raise CorruptBytesError("a domainMetadata without domain")
    return Domain(domain=name, configuration=_text(body, "configuration") or "", removed=body.get("removed") is True)


def _text(body: Body, name: str) -> str | None:
    value = body.get(name)
    if value is not None and not isinstance(value, str):
        raise CorruptBytesError(f"{name} {show_value(value)}, which is not text")
    return value


def _integer(body: Body, name: str) -> int | None:
    value = body.get(name)
    try:
        return None if value is None else integer(value)
    except ValueError as error:
        raise CorruptBytesError(f"{name} {show_value(value)}, which is not a number") from error


def _texts(values: Any, name: str) -> Sequence[str]:
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise CorruptBytesError(f"{name} that are not a list of texts")
    return values


def _json_text(value: object) -> str:
    return json_text.dumps(value) if isinstance(value, dict | list) else str(value)


def _configuration(values: Any) -> Mapping[str, str]:
    if not isinstance(values, Mapping):
        raise CorruptBytesError("a configuration that is not an object")
    return {str(name): value if isinstance(value, str) else _json_text(value) for name, value in values.items()}
