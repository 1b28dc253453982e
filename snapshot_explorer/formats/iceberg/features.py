"""The features of Iceberg tables: what is read, and what is refused by name.

Source: iceberg specification, "Format Versioning" and Appendix E.
"""

from functools import partial

from snapshot_explorer.formats.features import SHARED, Feature

_read = partial(Feature, status="read", since="0.1.0")
_refused = partial(Feature, status="refused", since="0.1.0")

FORMAT_VERSIONS = _read(
    name="format versions 1, 2 and 3",
    area="versions",
    condition="format-version of the metadata file",
    checked=("iceberg.metadata.table_metadata",),
)
OTHER_FORMAT_VERSIONS = _refused(
    name="format version 4, which is not adopted, and any other",
    area="versions",
    condition="format-version of the metadata file is another than 1, 2 or 3",
    checked=("iceberg.metadata.table_metadata._check_format_version",),
    message=(
        "{path} has format version {version}, which is not read: format version 4 is not adopted. Read are 1, 2 and 3. "
        "Read the table with the engine that wrote it."
    ),
)
GREAT_NUMBERS = _refused(
    name="ids of more than 64 bits",
    area="metadata",
    condition="a number of a metadata file is not a signed integer of 64 bits",
    checked=("iceberg.metadata.json_fields.integer",),
    message=(
        "{path} has {value} as {field}, which is not a signed integer of 64 bits. Iceberg itself cannot read it. Ask "
        "the writer of the table for a repaired copy."
    ),
)
ENCRYPTED_METADATA = _refused(
    name="encrypted manifest lists and manifests",
    area="metadata",
    condition="a snapshot has a key-id, or a manifest key_metadata",
    checked=("iceberg.metadata.manifest_lists.encrypted",),
    message=(
        "{path} is encrypted, which is not read: the keys are not in the table. The history can still be looked at; "
        "read the rows with an engine that has the keys."
    ),
)
OTHER_MANIFEST_FORMATS = _refused(
    name="manifests in another format than Avro",
    area="metadata",
    condition="a manifest list or a manifest is parquet, as in drafts of format version 4",
    checked=("iceberg.metadata.avro_files.read_avro",),
    message="{path} is a manifest in parquet, as drafts of format version 4 have it. Read are manifests in Avro.",
)

_METADATA: tuple[Feature, ...] = (
    FORMAT_VERSIONS,
    OTHER_FORMAT_VERSIONS,
    GREAT_NUMBERS,
    ENCRYPTED_METADATA,
    OTHER_MANIFEST_FORMATS,
)
_ROWS: tuple[Feature, ...] = ()

FEATURES: tuple[Feature, ...] = (*_METADATA, *_ROWS, *SHARED)
"""All of them, in the order of README."""
