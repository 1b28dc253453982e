"""Rewrites manifests and manifest lists of a copied Iceberg table, as other writers would have written them."""

import io
import json

import fastavro

IDS = ("field-id", "element-id", "key-id", "value-id")


def manifest_lists(folder):
    """Return the manifest lists of a table on the local disk."""
    return sorted((folder / "metadata").glob("snap-*.avro"))


def manifests(folder):
    """Return its manifests."""
    return sorted(set((folder / "metadata").glob("*.avro")) - set(manifest_lists(folder)))


def rewrite(path, *, schema=lambda schema: schema, record=lambda record: record):
    """Write an Avro file again with another schema and other records, and the same header."""
    with path.open("rb") as file:
        reader = fastavro.reader(file)
        records, header = [record(one) for one in reader], dict(reader.metadata)
    changed = schema(json.loads(header["avro.schema"]))
    rest = {key: value for key, value in header.items() if not key.startswith("avro.")}
    out = io.BytesIO()
    fastavro.writer(out, fastavro.parse_schema(changed), records, metadata=rest, codec="deflate")
    path.write_bytes(out.getvalue())


def set_lengths(folder):
    """Record the sizes that the manifests have now."""
    sizes = {path.name: path.stat().st_size for path in manifests(folder)}
    for path in manifest_lists(folder):
        rewrite(path, record=lambda one: one | {"manifest_length": sizes[one["manifest_path"].rpartition("/")[2]]})


def without_ids(schema):
    """Return an Avro schema without Iceberg's ids."""
    if isinstance(schema, dict):
        return {name: without_ids(part) for name, part in schema.items() if name not in IDS}
    return [without_ids(part) for part in schema] if isinstance(schema, list) else schema
