"""Loading, reloading, unloading; settings; living beside other extensions."""

from snapshot_explorer.results import Frame
from tests.inner.jupyter import MATCHER, SnapshotMagics


def ours(ip):
    """Return how many of each thing the extension has registered."""
    return {
        "magics": sorted(name for name in ip.magics_manager.magics["line"] if name in ("snapshot", "snap")),
        "configurables": sum(isinstance(item, SnapshotMagics) for item in ip.configurables),
        "matchers": sum(getattr(item, "matcher_identifier", None) == MATCHER for item in ip.Completer.custom_matchers),
        "formatters": Frame in ip.display_formatter.mimebundle_formatter.type_printers,
        "registry": "SnapshotMagics" in ip.magics_manager.registry,
    }


LOADED = {"magics": ["snap", "snapshot"], "configurables": 1, "matchers": 1, "formatters": True, "registry": True}
GONE = {"magics": [], "configurables": 0, "matchers": 0, "formatters": False, "registry": False}


def test_loading_says_nothing_and_unloading_removes_everything(bare_shell):
    cell = bare_shell.ok("%load_ext snapshot_explorer")

    assert (cell.stdout, cell.stderr, cell.said, cell.shown) == ("", "", [], {})
    assert ours(bare_shell.ip) == LOADED
    bare_shell.ok("%unload_ext snapshot_explorer")
    assert ours(bare_shell.ip) == GONE


def test_reloading_leaves_nothing_twice(bare_shell):
    for line in ("load_ext", "load_ext", "reload_ext", "reload_ext"):
        bare_shell.ok(f"%{line} snapshot_explorer")

    assert ours(bare_shell.ip) == LOADED


def test_open_tables_outlive_a_reload(orders):
    before = orders["orders"]

    orders.ok("%reload_ext snapshot_explorer")

    assert orders.ok("%snapshot show 3").result.version == 3
    assert orders.ok("%snapshot open").result["name"].to_pylist() == ["orders"]
    assert orders["orders"] is before


def test_a_name_that_another_extension_has_is_left_to_it(bare_shell, path):
    bare_shell.ok(
        "from IPython.core.magic import register_cell_magic\n"
        "@register_cell_magic\n"
        "def snapshot(line, cell):\n"
        "    return 'theirs'"
    )

    cell = bare_shell.ok("%load_ext snapshot_explorer")

    assert cell.said == ["Another extension already has %snapshot. Use %snap instead."]
    assert bare_shell.ok("%%snapshot\nx").result == "theirs"
    bare_shell.ok(f"%snap open {path} as orders")
    assert ours(bare_shell.ip)["magics"] == ["snap"]
    bare_shell.ok("%unload_ext snapshot_explorer")
    assert bare_shell.ok("%%snapshot\nx").result == "theirs"


def test_a_line_magic_of_another_survives_loading_and_unloading(bare_shell):
    bare_shell.ok(
        "from IPython.core.magic import register_line_magic\n"
        "@register_line_magic\n"
        "def snapshot(line):\n"
        "    return 'theirs'\n"
        "register_line_magic('snap')(snapshot)"
    )

    cell = bare_shell.ok("%load_ext snapshot_explorer")

    assert cell.said == [
        (
            "Another extension already has %snapshot and %snap. "
            "Unload the other extension, then %reload_ext snapshot_explorer."
        )
    ]
    bare_shell.ok("%unload_ext snapshot_explorer")
    assert bare_shell.ok("%snapshot").result == "theirs"


def test_config_lists_the_settings_with_their_help(shell):
    listed = shell.ok("%config SnapshotMagics").stdout

    for name in ("display_limit", "load_row_limit", "load_size_limit", "engine", "debug"):
        assert f"SnapshotMagics.{name}=" in listed
    assert "Rows above which `load` needs --limit or --yes." in listed
    assert "SnapshotMagics" in shell.ok("%config").stdout


def test_the_display_limit_is_what_is_drawn_and_what_log_reads(orders, written):
    for _ in range(3):
        written.commit()
    orders.ok("%config SnapshotMagics.display_limit = 2")

    cell = orders.ok("%snapshot log")

    assert cell.result.num_rows == 2
    assert "\n2 of 8 versions\n" in cell.shown["text/plain"]
    assert "2 of 8 versions" in cell.shown["text/html"]
    assert "\n2 of 8 versions\n" in orders.ok("orders.history()").shown["text/plain"]
    assert "\n4 of 8 versions\n" in orders.ok("%snapshot log -n 4").shown["text/plain"]


def test_the_engine_setting_is_what_load_returns(orders):
    orders.ok("%config SnapshotMagics.engine = 'arrow'")

    assert type(orders.ok("%snapshot load").result).__name__ == "Table"
    assert type(orders.ok("%snapshot load --engine pandas").result).__name__ == "DataFrame"


def test_settings_come_from_the_configuration(bare_shell):
    bare_shell.ip.config.SnapshotMagics.load_row_limit = 7

    bare_shell.ok("%load_ext snapshot_explorer")

    assert "load_row_limit" in bare_shell.ok("%config SnapshotMagics").stdout
    assert bare_shell.ok("%config SnapshotMagics.load_row_limit").result == 7
