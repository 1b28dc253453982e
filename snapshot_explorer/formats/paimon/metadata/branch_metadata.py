"""`BranchMetadata`: what a table bound to a branch reads its metadata with."""

from dataclasses import dataclass, replace

from snapshot_explorer.formats.paimon.metadata.history import PaimonHistory
from snapshot_explorer.formats.paimon.metadata.layout import MAIN, Layout
from snapshot_explorer.formats.paimon.metadata.schema import PaimonSchema, Schemas
from snapshot_explorer.formats.paimon.metadata.snapshots import PaimonSnapshot
from snapshot_explorer.storage import Storage


@dataclass(frozen=True, slots=True, kw_only=True)
class BranchMetadata:
    """The snapshots and schemas of a branch, cached."""

    storage: Storage
    layout: Layout
    history: PaimonHistory
    schemas: Schemas
    newest_state: int | None = None
    """The newest version, which is read under the newest schema; None if every version has its own schema."""

    @classmethod
    def of(cls, storage: Storage, branch: str | None) -> "BranchMetadata":
        """Bind to a branch, the main one for None. Reads nothing."""
        layout = Layout(branch)
        return cls(
            storage=storage, layout=layout, history=PaimonHistory(storage, layout), schemas=Schemas(storage, layout)
        )

    def pinned(self) -> "BranchMetadata":
        """Return the same metadata, with the newest schema read only once. Reads nothing."""
        return replace(self, schemas=self.schemas.pinned())

    def schema(self, snapshot: PaimonSnapshot) -> PaimonSchema:
        """Return the schema of a snapshot."""
        return self.schemas.by_id([snapshot.schema_id])[snapshot.schema_id]

    @property
    def name(self) -> str:
        """The name of the branch."""
        return self.layout.branch or MAIN

    def schema_id(self, version: int) -> int:
        """Return the schema id of a version; for the newest state the id of the newest schema."""
        own = self.history.snapshots([version])[0].schema_id
        return self.schemas.newest(own).id if version == self.newest_state else own
