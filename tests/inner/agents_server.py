"""The names of the module of `agents` that needs the SDK."""

from snapshot_explorer.agents.server import AgentServer
