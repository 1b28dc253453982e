"""The server of the Model Context Protocol, over stdio or HTTP on the loopback interface. Only it needs the SDK."""

import asyncio
from base64 import b64encode
from collections.abc import Mapping
from functools import partial
from importlib.metadata import version
from secrets import token_urlsafe
from time import monotonic
from typing import Any

import anyio
import mcp_types as types
import orjson
from mcp.server.lowlevel.helper_types import ReadResourceContents
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ResourceNotFoundError

from snapshot_explorer.agents.access import Access, CallLimits
from snapshot_explorer.agents.answers import OUTPUT_SCHEMA, Reply, answer_of, stopped
from snapshot_explorer.agents.tool import UNTRUSTED
from snapshot_explorer.agents.tools import INSTRUCTIONS, TOOLS
from snapshot_explorer.core.progress import Progress
from snapshot_explorer.storage.allowed_roots import AllowedRoots

_JSON = "application/json"
_CONCURRENT = 8
"""Calls that are computed at the same time; others wait."""
_MOST_RESOURCES, _RESOURCE_SECONDS = 32, 1_800
"""How many resources are kept, and for how long. A server over stdio ends with its session, and they with it."""
_HINTS = types.ToolAnnotations(read_only_hint=True, destructive_hint=False, idempotent_hint=True)


class AgentServer(MCPServer[Any]):
    """A server of the SDK with the tools, and the rows of the newest answers as resources.

    Over HTTP at 127.0.0.1, the SDK refuses requests of pages of other origins.
    """

    def __init__(self, roots: AllowedRoots, *, options: Mapping[str, Any] | None, limits: CallLimits) -> None:
        """Create a server.

        Args:
            roots: The folders below which everything must be that is read.
            options: Storage options for remote folders. They are never shown.
            limits: The limits of each call.
        """
        own = version("snapshot-explorer")
        super().__init__("snapshot-explorer", version=own, instructions=INSTRUCTIONS, log_level="WARNING")
        self._access = partial(Access, roots, options, limits)
        self._limiter = anyio.CapacityLimiter(_CONCURRENT)
        self._answers: dict[str, tuple[float, str]] = {}

    async def list_tools(self) -> list[types.Tool]:
        """Return the tools."""
        return [
            types.Tool(
                name=tool.name,
                description=tool.use,
                input_schema=dict(tool.input_schema),
                output_schema=dict(OUTPUT_SCHEMA),
                annotations=_HINTS,
            )
            for tool in TOOLS
        ]

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[Any, Any] | None = None
    ) -> types.CallToolResult:
        """Return the answer of a tool, with progress while it is computed."""
        loop = asyncio.get_running_loop()

        def report(progress: Progress) -> None:
            if context is not None:
                sending = context.report_progress(progress.done, progress.total, progress.title)
                asyncio.run_coroutine_threadsafe(sending, loop)

        access = self._access(report=report)
        reply = stopped(access)
        try:
            with anyio.move_on_after(access.limits.seconds):
                work = partial(answer_of, name, arguments, access)
                reply = await anyio.to_thread.run_sync(work, abandon_on_cancel=True, limiter=self._limiter)
        finally:
            access.stop()
        is_error = "error" in reply.content
        structured = None if is_error else reply.content
        return types.CallToolResult(
            content=self._content(name, reply), structured_content=structured, is_error=is_error
        )

    def _content(self, tool: str, reply: Reply) -> list[types.ContentBlock]:
        """Return an answer as text, a link to its rows, and a picture for people: its numbers are in the rows."""
        content: list[types.ContentBlock] = [types.TextContent(text=orjson.dumps(reply.content).decode())]
        if reply.resource:
            uri = f"snapshot-explorer://answers/{token_urlsafe()}"  # it cannot be guessed, and is not listed
            self._answers[uri] = monotonic(), orjson.dumps(reply.resource).decode()
            for old in list(self._answers)[:-_MOST_RESOURCES]:
                del self._answers[old]
            described = f"This answer with {len(reply.resource['rows']):,} rows. {UNTRUSTED}"
            content.append(types.ResourceLink(name=tool, uri=uri, mime_type=_JSON, description=described))
        if reply.picture:
            data, people = b64encode(reply.picture).decode(), types.Annotations(audience=["user"])
            content.append(types.ImageContent(data=data, mime_type="image/png", annotations=people))
        return content

    async def read_resource(self, uri: Any, context: object = None) -> list[ReadResourceContents]:  # noqa: ARG002 - as the SDK has it
        """Return an answer with all rows that were kept of it."""
        since, text = self._answers.get(str(uri), (0.0, ""))
        if not text or monotonic() - since > _RESOURCE_SECONDS:
            raise ResourceNotFoundError("There is no such resource any more. Call the tool again.")
        return [ReadResourceContents(content=text, mime_type=_JSON)]
