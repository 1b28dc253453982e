"""The names of inner modules of `agents` that tests use."""

import tests.inner.storage
from snapshot_explorer.agents.access import Access, CallLimits
from snapshot_explorer.agents.answers import OUTPUT_SCHEMA, answer_of, reply_of
from snapshot_explorer.agents.tool import VERSION, Answer, ToolSpelling
from snapshot_explorer.agents.tools import INSTRUCTIONS, TOOLS

allowed_roots = tests.inner.storage.AllowedRoots.of
