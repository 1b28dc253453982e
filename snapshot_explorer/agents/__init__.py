"""Tools for agents, by the Model Context Protocol: the questions of `Table` and `Lake`, bounded and read-only.

`tools` has a function and a record for each, as `jupyter/commands` has for commands; `tool` has their parameters, and
spells hints as calls; `calls` answers one call; `answers` makes bounded JSON of results and their evidence, by
`view/json_values.py`; `access` confines a call to the allowed folders and to its limits; `server` needs the SDK.
"""
