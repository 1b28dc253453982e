"""Schemas of Avro, as dicts."""


def record(name, /, **fields):
    """Return the schema of a record with these fields and their types."""
    return {
        "type": "record",
        "name": name,
        "fields": [{"name": field, "type": dtype} for field, dtype in fields.items()],
    }


def array(items):
    return {"type": "array", "items": items}
