"""What Paimon's options say of the upkeep of a table."""

import pytest

from tests.inner.paimon import PaimonSchema, settings_of, sql_name

MB = 1024 * 1024


def of(options=(), *, keys=("id",), name="shop.orders"):
    return settings_of(
        PaimonSchema(id=0, fields=(), partition_keys=(), primary_keys=keys, options=dict(options), comment=None), name
    )


def test_without_options_paimons_defaults_are_taken():
    keyed, appended = of(), of(keys=())

    assert (keyed.target_bytes, appended.target_bytes) == (128 * MB, 256 * MB)
    assert (keyed.small_bytes, keyed.deleted_ratio) == (int(128 * MB * 0.7), 0.2)
    assert (keyed.runs_trigger, keyed.runs_stop) == (5, 8)
    assert (appended.runs_trigger, appended.runs_stop) == (None, None)
    assert (keyed.metadata_limit, keyed.metadata_bytes) == (30, 8 * MB)
    assert (
        keyed.target_source == "Paimon's default for tables with a primary key; the option target-file-size is not set"
    )
    assert keyed.notes == ()


def test_options_of_the_table_count():
    found = of(
        {
            "target-file-size": "64 mb",
            "compaction.small-file-ratio": "0.5",
            "compaction.delete-ratio-threshold": "0.1",
            "num-sorted-run.compaction-trigger": "10",
            "manifest.target-file-size": "1mb",
            "manifest.merge-min-count": "4",
        }
    )

    assert (found.target_bytes, found.small_bytes) == (64 * MB, 32 * MB)
    assert found.target_source == "the table's option target-file-size"
    assert (found.deleted_ratio, found.metadata_bytes, found.metadata_limit) == (0.1, MB, 4)
    assert (found.runs_trigger, found.runs_stop) == (10, 13)


def test_writers_never_stop_before_a_compaction_is_triggered():
    found = of({"num-sorted-run.compaction-trigger": "10", "num-sorted-run.stop-trigger": "3"})

    assert found.runs_stop == 10


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("target-file-size", "large"),
        ("compaction.small-file-ratio", "nan"),
        ("compaction.small-file-ratio", "-1"),
        ("num-sorted-run.compaction-trigger", "5.5"),
        ("num-sorted-run.stop-trigger", "9" * 30),
        ("manifest.merge-min-count", "0"),
    ],
)
def test_an_invalid_value_is_ignored_with_a_note(option, value):
    found, plain = of({option: value}), of()

    assert found.notes == (f"The option {option}={value!r} is not valid; its default is used.",)
    assert (found.target_bytes, found.small_bytes, found.runs_trigger, found.runs_stop, found.metadata_limit) == (
        plain.target_bytes,
        plain.small_bytes,
        plain.runs_trigger,
        plain.runs_stop,
        plain.metadata_limit,
    )


@pytest.mark.parametrize(
    ("root", "branch", "name"),
    [
        ("s3://lake/shop.db/orders", None, "shop.orders"),
        ("/data/shop.db/orders/", "dev", "shop.`orders$branch_dev`"),
        ("/data/orders", None, "DATABASE.orders"),
        ("orders", None, "DATABASE.orders"),
    ],
)
def test_a_table_is_called_after_its_folders(root, branch, name):
    assert sql_name(root, branch) == name


def test_a_quote_in_a_name_stays_in_the_text_of_a_command():
    name = sql_name("/data/shop.db/o'rders", None)

    assert of(name=name).metadata_command == "CALL sys.compact_manifest(table => 'shop.`o\\'rders`')"
