"""Names of an earlier release still work, and say what they are called now."""

import pytest

from snapshot_explorer import errors, open_table, samples


@pytest.mark.parametrize(
    ("old", "new", "arguments"),
    [
        ("changes", "file_changes", ("7..8",)),
        ("changes_between", "row_changes", (7, 8)),
        ("health_over", "health_history", ("7..8",)),
    ],
)
def test_a_method_of_a_table_has_its_old_name_too(old, new, arguments):
    table = open_table(samples.path("orders"))

    with pytest.warns(DeprecationWarning, match=f"Table.{old} is now Table.{new}."):
        found = getattr(table, old)(*arguments)

    assert found.to_pandas().equals(getattr(table, new)(*arguments).to_pandas())


def test_the_changes_of_a_snapshot_have_their_old_name_too():
    snapshot = open_table(samples.path("orders")).at(8)

    with pytest.warns(DeprecationWarning, match="Snapshot.changes is now Snapshot.file_changes."):
        found = snapshot.changes()

    assert found.to_arrow().equals(snapshot.file_changes().to_arrow())


@pytest.mark.parametrize(
    ("old", "new"), [("BadReferenceError", "InvalidArgumentError"), ("BrokenTableError", "CorruptTableError")]
)
def test_an_error_has_its_old_name_too(old, new):
    with pytest.warns(DeprecationWarning, match=f"errors.{old} is now errors.{new}."):
        found = getattr(errors, old)

    assert found is getattr(errors, new)
    with pytest.raises(AttributeError):
        errors.NoSuchError  # noqa: B018 - it raises
