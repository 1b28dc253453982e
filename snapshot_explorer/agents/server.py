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
import uvicorn
from mcp import MCPError
from mcp.server import Server, ServerRequestContext
from mcp.server.stdio import stdio_server

from snapshot_explorer.agents.access import Access, CallLimits
from snapshot_explorer.agents.answers import UNTRUSTED, Reply
from snapshot_explorer.agents.calls import answer_of, stopped
from snapshot_explorer.agents.tool import OUTPUT_SCHEMA
from snapshot_explorer.agents.tools import INSTRUCTIONS, TOOLS
from snapshot_explorer.core.progress import Progress
from snapshot_explorer.storage.allowed_roots import AllowedRoots

_JSON = "application/json"
_CONCURRENT = 8
"""Calls that are computed at the same time; others wait."""
_MOST_RESOURCES, _RESOURCE_SECONDS = 32, 1_800
"""How many resources are kept, and for how long. A server over stdio ends with its session, and they with it."""
_HINTS = types.ToolAnnotations(read_only_hint=True, destructive_hint=False, idempotent_hint=True)
_Context = ServerRequestContext[Any]


def serve(
    roots: AllowedRoots, *, options: Mapping[str, Any] | None = None, limits: CallLimits, port: int | None = None
) -> None:
    """Serve the tools until the client ends, or Ctrl-C.

    Args:
        roots: The folders below which everything must be that is read.
        options: Storage options for remote folders. They are never shown.
        limits: The limits of each call.
        port: The port of 127.0.0.1 for streamable HTTP at `/mcp`; None for stdio.
    """
    server = make_server(roots, options=options, limits=limits)
    anyio.run(_over_stdio if port is None else partial(_over_http, port=port), server)


async def _over_stdio(server: Server[Any]) -> None:
    async with stdio_server() as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())


async def _over_http(server: Server[Any], *, port: int) -> None:
    # For this host, the SDK refuses requests of pages of other origins.
    app = server.streamable_http_app(host="127.0.0.1")
    await uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=port, log_level="warning")).serve()


def make_server(roots: AllowedRoots, *, options: Mapping[str, Any] | None, limits: CallLimits) -> Server[Any]:
    """Return a server of the SDK with the tools. Arguments as `serve`."""
    calls = _Calls(roots, options, limits)
    return Server(
        "snapshot-explorer",
        version=version("snapshot-explorer"),
        instructions=INSTRUCTIONS,
        on_list_tools=calls.list_tools,
        on_call_tool=calls.call_tool,
        on_list_resources=calls.list_resources,
        on_read_resource=calls.read_resource,
    )


class _Calls:
    """What the server does for its clients, and the rows of the newest answers as resources."""

    def __init__(self, roots: AllowedRoots, options: Mapping[str, Any] | None, limits: CallLimits) -> None:
        self._roots, self._options, self._limits = roots, options, limits
        self._limiter = anyio.CapacityLimiter(_CONCURRENT)
        self._resources: dict[str, tuple[float, str]] = {}

    async def list_tools(self, _: _Context, __: object) -> types.ListToolsResult:
        """Return the tools."""
        tools = [
            types.Tool(
                name=tool.name,
                description=tool.use,
                input_schema=dict(tool.input_schema),
                output_schema=dict(OUTPUT_SCHEMA),
                annotations=_HINTS,
            )
            for tool in TOOLS
        ]
        return types.ListToolsResult(tools=tools)

    async def call_tool(self, context: _Context, parameters: types.CallToolRequestParams) -> types.CallToolResult:
        """Return the answer of a tool, with progress while it is computed."""
        access = Access(self._roots, self._options, self._limits)
        reply = stopped(access)
        try:
            with anyio.move_on_after(self._limits.seconds):
                listener = _Reports(access, context, asyncio.get_running_loop())
                work = partial(answer_of, parameters.name, parameters.arguments or {}, access, listener)
                reply = await anyio.to_thread.run_sync(work, abandon_on_cancel=True, limiter=self._limiter)
        finally:
            access.stop()
        is_error = "error" in reply.content
        structured = None if is_error else reply.content
        content = self._content(parameters.name, reply)
        return types.CallToolResult(content=content, structured_content=structured, is_error=is_error)

    def _content(self, tool: str, reply: Reply) -> list[types.ContentBlock]:
        """Return an answer as text, a link to its rows, and a picture for people: its numbers are in the rows."""
        content: list[types.ContentBlock] = [types.TextContent(text=orjson.dumps(reply.content).decode())]
        if reply.resource:
            uri = f"snapshot-explorer://answers/{token_urlsafe()}"
            self._resources[uri] = monotonic(), orjson.dumps(reply.resource).decode()
            for old in list(self._resources)[:-_MOST_RESOURCES]:
                del self._resources[old]
            described = f"This answer with {len(reply.resource['rows']):,} rows. {UNTRUSTED}"
            content.append(types.ResourceLink(name=tool, uri=uri, mime_type=_JSON, description=described))
        if reply.picture:
            data, people = b64encode(reply.picture).decode(), types.Annotations(audience=["user"])
            content.append(types.ImageContent(data=data, mime_type="image/png", annotations=people))
        return content

    async def list_resources(self, _: _Context, __: object) -> types.ListResourcesResult:
        """Return nothing: answers link to their resources, whose addresses cannot be guessed."""
        return types.ListResourcesResult(resources=[])

    async def read_resource(self, _: _Context, parameters: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        """Return an answer with all rows that were kept of it."""
        since, text = self._resources.get(parameters.uri, (0.0, ""))
        if not text or monotonic() - since > _RESOURCE_SECONDS:
            raise MCPError(types.INVALID_PARAMS, "There is no such resource any more. Call the tool again.")
        part = types.TextResourceContents(uri=parameters.uri, mime_type=_JSON, text=text)
        return types.ReadResourceResult(contents=[part])


class _Reports:
    """Sends progress to the client, and ends work whose call has ended."""

    def __init__(self, access: Access, context: _Context, loop: asyncio.AbstractEventLoop) -> None:
        self._access, self._session, self._loop = access, context.session, loop

    def show(self, progress: Progress) -> None:
        """Send the progress, from any thread of the work."""
        self._access.check_stop()
        report = self._session.report_progress(progress.done, progress.total, progress.title)
        asyncio.run_coroutine_threadsafe(report, self._loop)

    def clear(self) -> None:
        """Send nothing: the answer follows."""
