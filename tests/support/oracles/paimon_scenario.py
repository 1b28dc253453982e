"""A table as it is written: commits, compactions and changes of its schema, drawn from a seeded generator."""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tests.support.oracles.paimon_values import NESTED, SIMPLE, SUCCESSORS, Dice, root, value

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

KEPT = {"snapshot.num-retained.min": "1000", "snapshot.time-retained": "1000 d"}


@dataclass
class Scenario:
    """A table as it is written: what the next step has to know."""

    core: Any
    name: str
    dice: Dice
    release: str
    columns: dict[str, Any] = field(default_factory=dict)
    keys: list[str] = field(default_factory=list)
    parts: list[str] = field(default_factory=list)
    options: dict[str, str] = field(default_factory=dict)
    fixed: set[str] = field(default_factory=set)
    """Columns that stay as they are: an option names them, or they are part of a key."""
    pool: list[dict[str, Any]] = field(default_factory=list)
    """Values of the key columns, of which the rows are made."""
    kinds: Sequence[str] = ("+I",)
    skipped: list[str] = field(default_factory=list)
    """Steps that Paimon refused."""
    every_type: bool = False
    """Whether the table holds types that 0.9 can write, but trips over when it compacts."""
    names: int = 0

    def create(self) -> None:
        """Create the table."""
        self.core.create(self.name, self.columns, " ".join(self.keys), KEPT | self.options, " ".join(self.parts))

    def new_column(self, kind: Any) -> str:
        """Add a column to those that the table is created with."""
        self.names += 1
        name = f"c{self.names}"
        self.columns[name] = kind
        return name

    def row(self, key: dict[str, Any]) -> tuple[Any, ...]:
        """Return a row with a key."""
        return tuple(key[name] if name in key else value(self.dice, kind) for name, kind in self.columns.items())

    def change(self, key: dict[str, Any]) -> tuple[Any, ...]:
        """Return a change of a key, with the bucket if writers choose it."""
        kind = self.dice.choice(self.kinds)
        if self.keys and self.options.get("bucket") == "-1":
            return kind, self.row(key), zlib.crc32(repr(key).encode()) % 3
        return kind, self.row(key)

    def commit(self, count: int = 25, **more: Any) -> None:
        """Commit random changes."""
        changes = [self.change(self.dice.choice(self.pool)) for _ in range(self.dice.randrange(1, count))]
        self.attempt("commit", lambda: self.core.change(self.name, changes, **more))

    def overwrite(self) -> None:
        """Write rows instead of all others."""
        table = self.core.table(self.name, dynamic_partition_overwrite=self.dice.choice(("true", "false")))
        self.commit(8, overwrite={}, table=table)

    def compact(self, *, full: bool | None = None) -> None:
        """Compact all buckets, fully or as far as Paimon finds it useful."""
        full = self.dice.random() < 0.6 if full is None else full
        self.attempt("compact", lambda: self.core.compact_all(self.name, full=full))

    def attempt(self, what: str, step: Callable[[], Any]) -> bool:
        """Take a step; return whether Paimon let it."""
        refusal = self.core.refusal(step)
        if refusal:
            self.skipped.append(f"{what}: {refusal}")
        return not refusal

    def alter(self) -> None:
        """Change the schema in one way."""
        free = [name for name in self.columns if name not in self.fixed]
        ways = [self.add, self.set_format]
        if len(free) > 1:
            ways += [self.rename, self.retype, self.retype, self.drop, self.move]
        way = self.dice.choice(ways)
        way(self.dice.choice(free)) if free else self.add("")

    def add(self, _: str) -> None:
        """Add a column, maybe in the midst of others, maybe of a name that was dropped."""
        changes, types = self.core.paimon.schema.SchemaChange, [*SIMPLE, *NESTED]
        kind, other = self.dice.choice(self.possible(types)), self.dice.choice(list(self.columns))
        self.names += 1
        name = self.dice.choice((f"c{self.names}", f"c{self.names - 1}"))
        where = self.dice.randrange(3)
        place = (None, changes.Move.first(name), changes.Move.after(name, other))[where]
        if name in self.columns or not self.attempt(
            "add", lambda: self.core.alter(self.name, changes.addColumn(name, self.core.type(kind), None, place))
        ):
            return
        at = {0: len(self.columns), 1: 0, 2: list(self.columns).index(other) + 1}[where]
        listed = list(self.columns.items())
        self.columns = dict([*listed[:at], (name, kind), *listed[at:]])

    def rename(self, name: str) -> None:
        """Rename a column."""
        self.names += 1
        new = f"c{self.names}"
        change = self.core.paimon.schema.SchemaChange.renameColumn(name, new)
        if self.attempt("rename", lambda: self.core.alter(self.name, change)):
            self.columns = {new if one == name else one: kind for one, kind in self.columns.items()}

    def retype(self, name: str) -> None:
        """Change the type of a column."""
        kind = self.dice.choice(SUCCESSORS.get(root(self.columns[name]), (self.columns[name],)))
        if kind not in self.possible([kind]):
            return
        if isinstance(self.columns[name], dict):  # not read: arrays and maps that became texts
            return
        change = self.core.paimon.schema.SchemaChange.updateColumnType(name, self.core.type(kind))
        if self.attempt(f"retype {self.columns[name]} {kind}", lambda: self.core.alter(self.name, change)):
            self.columns[name] = kind

    def drop(self, name: str) -> None:
        """Drop a column."""
        change = self.core.paimon.schema.SchemaChange.dropColumn(name)
        if self.attempt("drop", lambda: self.core.alter(self.name, change)):
            del self.columns[name]

    def move(self, name: str) -> None:
        """Put a column first."""
        changes = self.core.paimon.schema.SchemaChange
        change = changes.updateColumnPosition(changes.Move.first(name))
        if self.attempt("move", lambda: self.core.alter(self.name, change)):
            self.columns = {name: self.columns[name]} | self.columns

    def set_format(self, _: str) -> None:
        """Have later files written in another format."""
        if "file.format" in self.options and self.options["file.format"] != "avro":
            change = self.core.paimon.schema.SchemaChange.setOption("file.format", self.dice.choice(("orc", "parquet")))
            self.attempt("format", lambda: self.core.alter(self.name, change))

    def possible(self, kinds: Sequence[Any]) -> list[Any]:
        """Return the types that the table's format holds, and that 0.9 reads again when it compacts parquet."""
        avro = "avro" in (self.options.get("file.format"), self.options.get("file.format.per.level", "")[-4:])
        old = self.release == "0.9" and not self.every_type
        wanted = [kind for kind in kinds if not old or isinstance(kind, str)]
        return [kind for kind in wanted if not (avro or old) or "(9)" not in str(kind)]
