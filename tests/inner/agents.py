"""The names of inner modules of `agents` that tests use."""

import tests.inner.storage
from snapshot_explorer.agents.access import Access, CallLimits
from snapshot_explorer.agents.answers import OUTPUT_SCHEMA, ToolSpelling, answer_of, reply_of
from snapshot_explorer.agents.tool import Answer
from snapshot_explorer.agents.tools import INSTRUCTIONS, TOOLS

allowed_roots = tests.inner.storage.AllowedRoots.of
