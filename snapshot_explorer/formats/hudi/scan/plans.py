"""Plans of splits of a Hudi table."""

from collections.abc import Hashable
from dataclasses import dataclass, replace

import pyarrow as pa

from snapshot_explorer.formats.hudi.files.data_files import BaseFile
from snapshot_explorer.formats.hudi.files.log_files import HudiLogFile
from snapshot_explorer.formats.hudi.metadata.types import HudiField
from snapshot_explorer.formats.hudi.scan.merge_rules import HudiMergeRules
from snapshot_explorer.formats.hudi.scan.record_keys import RecordKeys


@dataclass(frozen=True, slots=True, kw_only=True)
class LogMerge:
    """The log files of a slice, and the rules to merge them into its base file. Picklable."""

    logs: tuple[HudiLogFile, ...]
    """The log files, in order."""
    rules: HudiMergeRules
    """The rules by which records are merged."""
    keys: RecordKeys


@dataclass(frozen=True, slots=True, kw_only=True)
class HudiPlan:
    """The plan of a split: base files without log files, or one file slice. `Split.detail`; picklable."""

    bases: tuple[BaseFile, ...]
    """The base files; of a slice with log files one or none."""
    merge: LogMerge | None
    """The log files of the slice; None without any."""
    fields: tuple[HudiField, ...]
    """The version's columns."""
    partition: tuple[tuple[str, pa.Scalar], ...]
    """The values of partition columns in the path, which files may lack."""

    @property
    def identity(self) -> Hashable:
        """Return a value that is equal if the same rows are read; see `Split.identity`."""
        return self.bases, self.merge, self.fields

    def for_file(self, index: int) -> "HudiPlan":
        """Return the plan of one of the base files."""
        return replace(self, bases=(self.bases[index],))
