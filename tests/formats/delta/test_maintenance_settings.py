"""What Delta's properties say of the upkeep of a table."""

import pytest

from tests.inner.delta import settings_of

MB = 1024 * 1024


def test_without_properties_a_file_is_small_where_auto_compaction_takes_it():
    found = settings_of({}, "s3://lake/orders")

    assert (found.target_bytes, found.small_bytes) == (128 * MB, 64 * MB)
    assert (found.deleted_ratio, found.metadata_limit, found.metadata_bytes) == (0.05, 10, None)
    assert (found.runs_trigger, found.runs_stop) == (None, None)
    assert found.compact == "OPTIMIZE delta.`s3://lake/orders`"
    assert found.notes == ()


def test_properties_of_the_table_count():
    found = settings_of({"delta.targetFileSize": "32mb", "delta.checkpointInterval": "100"}, "orders")

    assert (found.target_bytes, found.small_bytes, found.metadata_limit) == (32 * MB, 16 * MB, 100)
    assert found.target_source == "the table's property delta.targetFileSize"


@pytest.mark.parametrize("name", ["delta.targetFileSize", "delta.checkpointInterval"])
@pytest.mark.parametrize("value", ["", "much", "0", "-5", "9" * 40])
def test_an_invalid_value_is_ignored_with_a_note(name, value):
    found = settings_of({name: value}, "orders")

    assert (found.target_bytes, found.metadata_limit) == (128 * MB, 10)
    assert found.notes == (f"The property {name}={value[:50]!r} is not valid; its default is used.",)


def test_a_backtick_in_a_path_stays_in_the_text_of_a_command():
    assert settings_of({}, "/a`b").compact == "OPTIMIZE delta.`/a``b`"
