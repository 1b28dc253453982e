"""The names of inner modules of `agents` that tests use."""

import tests.inner.storage
from snapshot_explorer.agents.access import Access, CallLimits
from snapshot_explorer.agents.answers import Answer, reply_of
from snapshot_explorer.agents.calls import answer_of, tool_call, tool_text
from snapshot_explorer.agents.tool import OUTPUT_SCHEMA
from snapshot_explorer.agents.tools import INSTRUCTIONS, TOOLS

allowed_roots = tests.inner.storage.AllowedRoots.of
