"""Tools for agents, by the Model Context Protocol: the questions of `Table` and `Lake`, bounded and read-only.

`tools` has a function and a record for each, as `jupyter/commands` has for commands; `tool` has their parameters;
`answers` answers a call in bounded JSON, with its evidence, by `view/json_values.py`, and spells hints as calls;
`access` confines a call to the allowed folders and to its limits; `server` needs the SDK.
"""
