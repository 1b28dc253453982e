"""The names of inner modules of `agents` that tests use."""

from snapshot_explorer.agents.access import Access, CallLimits, allowed_roots
from snapshot_explorer.agents.answers import Answer, document
from snapshot_explorer.agents.server import _INSTRUCTIONS as INSTRUCTIONS
from snapshot_explorer.agents.server import answer_of, make_server
from snapshot_explorer.agents.spelling import tool_call, tool_text
from snapshot_explorer.agents.tools import TOOLS
