"""The inner modules that tests use, a file for each room and each format: the one place to change when a module moves.

All other files in `tests/` import from packages: `snapshot_explorer`, a room such as `snapshot_explorer.table`, or a
package in a room such as `snapshot_explorer.formats.delta`. `tests/package/test_architecture.py` holds that.
"""
