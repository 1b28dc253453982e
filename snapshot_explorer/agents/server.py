"""The server of the Model Context Protocol, over stdio or HTTP on the loopback interface. Only it needs the SDK."""

from __future__ import annotations

import asyncio
from functools import partial
from importlib.metadata import version
from importlib.util import find_spec
from time import monotonic
from typing import TYPE_CHECKING, Any

import orjson

from snapshot_explorer.agents.access import Access, CallLimits, allowed_roots
from snapshot_explorer.agents.answers import UNTRUSTED, bounded_text, document
from snapshot_explorer.agents.spelling import tool_call, tool_text
from snapshot_explorer.agents.tool import ToolRequest
from snapshot_explorer.agents.tools import TOOLS
from snapshot_explorer.core.errors import InvalidArgumentError, MissingDependencyError, SnapshotExplorerError
from snapshot_explorer.core.hints import Hint, python_call, spell
from snapshot_explorer.core.progress import Progress, StoppedError, listen, stop_with
from snapshot_explorer.history import history_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mcp.server import Server
    from mcp.server.context import ServerRequestContext
    from mcp_types import CallToolRequestParams, CallToolResult, ListToolsResult

    from snapshot_explorer.agents.answers import Answer
    from snapshot_explorer.agents.tool import AgentTool
    from snapshot_explorer.core.progress import Listener
    from snapshot_explorer.storage.allowed_roots import AllowedRoots

_CONCURRENT = 8
"""Calls that are computed at the same time; others wait."""
_MESSAGE_LETTERS = 2_000
_INSTRUCTIONS = (
    "Looks into the past of Paimon, Delta Lake, Iceberg, Hudi and DuckLake tables, read-only. Start with find_tables, "
    "then describe_table or health. Each answer has next_calls: follow them. To find a bad commit: find_anomalies, or "
    "bisect with a condition; to see its rows: changed_rows; to take it back: repair_plan, whose SQL a person runs. "
    f"Say what evidence.not_checked says, and cite evidence. {UNTRUSTED}"
)


def serve(
    allow: Sequence[str], *, options: Mapping[str, Any] | None = None, limits: CallLimits, port: int | None = None
) -> None:
    """Serve the tools until the client ends, or Ctrl-C.

    Args:
        allow: The folders and URLs below which everything must be that is read.
        options: Storage options for remote folders. They are never shown.
        limits: The limits of each call.
        port: The port of 127.0.0.1 for streamable HTTP at `/mcp`; None for stdio.

    Raises:
        MissingDependencyError: The SDK is not installed.
        InvalidArgumentError: An allowed folder is not valid.
    """
    roots = allowed_roots(allow)
    if find_spec("mcp") is None:
        raise MissingDependencyError(
            "mcp needs the SDK of the Model Context Protocol, which is not installed. Install it: "
            "pip install 'snapshot-explorer[mcp]'."
        )
    import anyio  # noqa: PLC0415 - comes with the SDK

    server = make_server(roots, options=options, limits=limits)
    anyio.run(_over_stdio if port is None else partial(_over_http, port=port), server)


async def _over_stdio(server: Server[Any]) -> None:
    from mcp.server.stdio import stdio_server  # noqa: PLC0415 - optional

    async with stdio_server() as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())


async def _over_http(server: Server[Any], *, port: int) -> None:
    import uvicorn  # noqa: PLC0415 - comes with the SDK

    # For this host, the SDK refuses requests of pages of other origins.
    app = server.streamable_http_app(host="127.0.0.1")
    await uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=port, log_level="warning")).serve()


def make_server(roots: AllowedRoots, *, options: Mapping[str, Any] | None, limits: CallLimits) -> Server[Any]:
    """Return a server of the SDK with the tools. Arguments as `serve`."""
    import anyio  # noqa: PLC0415 - comes with the SDK
    import mcp_types as types  # noqa: PLC0415 - optional
    from mcp.server import Server  # noqa: PLC0415 - optional

    hints = types.ToolAnnotations(read_only_hint=True, destructive_hint=False, idempotent_hint=True)
    listed = [
        types.Tool(
            name=tool.name,
            description=tool.use,
            input_schema=tool.input_schema,
            output_schema=tool.output_schema,
            annotations=hints,
        )
        for tool in TOOLS
    ]
    limiter = anyio.CapacityLimiter(_CONCURRENT)

    async def list_tools(_: ServerRequestContext[Any], __: object) -> ListToolsResult:
        return types.ListToolsResult(tools=listed)

    async def call_tool(context: ServerRequestContext[Any], parameters: CallToolRequestParams) -> CallToolResult:
        access = Access(roots, options, limits)

        async def report(progress: Progress) -> None:
            await context.session.report_progress(progress.done, progress.total, progress.title)

        loop = asyncio.get_running_loop()

        def send(progress: Progress) -> None:  # from any thread of the work
            asyncio.run_coroutine_threadsafe(report(progress), loop)

        content = _too_long(limits)
        try:
            with anyio.move_on_after(limits.seconds):
                listener = _Reports(access, send)
                work = partial(answer_of, parameters.name, parameters.arguments or {}, access, listener)
                content = await anyio.to_thread.run_sync(work, abandon_on_cancel=True, limiter=limiter)
        finally:
            access.stop()
        is_error = "error" in content
        return types.CallToolResult(
            content=[types.TextContent(type="text", text=orjson.dumps(content).decode())],
            structured_content=None if is_error else content,
            is_error=is_error,
        )

    return Server(
        "snapshot-explorer",
        version=version("snapshot-explorer"),
        instructions=_INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


class _Reports:
    """Sends progress to the client, and ends work whose call has ended."""

    def __init__(self, access: Access, send: Callable[[Progress], object]) -> None:
        self._access, self._send = access, send

    def show(self, progress: Progress) -> None:
        """Send the progress."""
        self._access.check_stop()
        self._send(progress)

    def clear(self) -> None:
        """Send nothing: the answer follows."""


def answer_of(
    name: str, arguments: Mapping[str, object], access: Access, listener: Listener | None = None
) -> dict[str, object]:
    """Return the answer of a tool, or its error, as JSON values. Its long work ends when the call ends.

    Args:
        name: The name of the tool.
        listener: Shows the progress of the work.
    """
    tool = next((item for item in TOOLS if item.name == name), None)
    call = partial(tool_call, tools=TOOLS, asked=arguments, tool=tool)
    spelled = partial(tool_text, tools=TOOLS, asked=arguments, tool=tool)
    began = monotonic()
    listen(listener)
    stop_with(access.check_stop)
    try:
        if tool is None:
            raise InvalidArgumentError(f"There is no such tool. Tools: {', '.join(item.name for item in TOOLS)}.")
        request = ToolRequest(access, tool.parse(arguments))
        answer = tool.run(request)
        evidence = _evidence(tool, request, answer) | {"seconds": round(monotonic() - began, 3)}
        return document(answer, access.limits, evidence, call=call, spelled=spelled)
    except StoppedError:
        return _too_long(access.limits)
    except SnapshotExplorerError as error:
        calls = [item for hint in getattr(error.message, "hints", ()) if (item := call(hint)) is not None]
        return _failure(type(error).__name__, spell(error.message, spelled), calls)
    finally:
        listen(None)
        stop_with(None)


def _evidence(tool: AgentTool, request: ToolRequest, answer: Answer) -> dict[str, object]:
    """Return which table and versions an answer is about, what it cost, and the Python that returns the same."""
    if answer.path:
        return {"table": answer.path, "format": None, "times": "", "requests": None, "python": answer.python}
    table, (verb, names) = request.table, next(iter(tool.calls.items()))
    own_names = {own: name for name, own in names.items()}
    chosen = request.chosen or ({"version": "latest"} if verb == "table.at" else {})
    hint = Hint(verb, {own_names.get(name, name): item for name, item in chosen.items()})
    branch = {"branch": request.arguments["branch"]} if "branch" in request.arguments else {}
    opening = python_call(Hint("open_table", {"path": table.path, **branch}))
    past = history_of(table)
    return {
        "table": table.path,
        "format": table.format,
        "times": past.span_text(answer.versions) if answer.versions else "",
        "requests": past.table_format.storage.requests,
        "python": f"{opening}.{python_call(hint).removeprefix('table.')}",
    }


def _too_long(limits: CallLimits) -> dict[str, object]:
    limit = f"{limits.seconds:g} seconds, the limit of this server"
    advice = "Ask for fewer versions, or for a condition that fewer files can match."
    return _failure("LimitError", f"The call took more than {limit}, and was stopped. {advice}")


def _failure(kind: str, message: str, calls: Sequence[Mapping[str, object]] = ()) -> dict[str, object]:
    error = {"type": kind, "message": bounded_text(" ".join(message.split()), _MESSAGE_LETTERS)}
    return {"error": error, "next_calls": list(calls), "untrusted": UNTRUSTED}
