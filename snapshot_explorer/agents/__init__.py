"""Tools for agents, by the Model Context Protocol: the questions of `Table` and `Lake`, bounded and read-only.

`tools` has a function and a record for each, as `jupyter/commands` has for commands; `calls` answers one call, and
spells hints as calls; `answers` makes bounded JSON of results and their evidence, by `view/json_values.py`; `access`
confines a call to the allowed folders and to its limits; `server` is the only module that needs the SDK.
"""
