"""Containers for arguments with secrets: a traceback with local variables, a debugger or a pickle shows no secret."""

import functools
import os
from collections.abc import Callable, Mapping
from typing import Any, NoReturn, TypeVar, cast

from snapshot_explorer.core.errors import InvalidArgumentError, SnapshotExplorerError
from snapshot_explorer.core.url_secrets import hide_typed_secrets

Call = TypeVar("Call", bound=Callable[..., Any])


class HiddenOptions(dict[str, Any]):
    """Options of a storage or a catalog, whose repr hides their values. They are not pickled."""

    def __repr__(self) -> str:
        return f"<{len(self)} options>"

    __str__ = __repr__

    def __reduce__(self) -> NoReturn:
        raise TypeError("Options with secrets are not pickled.")


class HiddenTexts(list[str]):
    """Secrets. Only their number is shown."""

    def __repr__(self) -> str:
        return f"<{len(self)} texts>"


class HiddenText(str):
    """A text that is not shown at all."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "'...'"

    def __reduce__(self) -> NoReturn:
        raise TypeError("A text that may be a secret is not pickled.")


class HiddenUrl(str):
    """A URL with secrets, whose repr hides them."""

    __slots__ = ()

    def __repr__(self) -> str:
        return repr(hide_typed_secrets(str(self)))

    def __reduce__(self) -> tuple[type[str], tuple[str]]:
        return str, (hide_typed_secrets(str(self)),)


def hidden_options(options: Mapping[str, Any] | None, name: str = "storage_options") -> HiddenOptions | None:
    """Return options with hidden values; None for no options.

    Raises:
        InvalidArgumentError: They are not a dict.
    """
    if not isinstance(options, Mapping | None):
        raise InvalidArgumentError(f"{name} must be a dict, got {type(options).__name__}.")
    return options if isinstance(options, HiddenOptions | None) else HiddenOptions(options)


Argument = TypeVar("Argument")


def hidden_url(path: Argument) -> Argument | HiddenUrl:
    """Return a path, as a `HiddenUrl` if it has secrets."""
    if isinstance(path, HiddenUrl) or not isinstance(path, str | os.PathLike):
        return path
    text: object = os.fspath(cast("str", path))
    return HiddenUrl(text) if isinstance(text, str) and hide_typed_secrets(text) != text else path


def hidden_text(text: Argument) -> Argument | HiddenText:
    """Return a text as a hidden text: it may be a secret in the wrong argument."""
    return HiddenText(text) if isinstance(text, str) else text


class bare_errors:  # noqa: N801 - used like a function
    """A block whose errors have no frames of the called functions, whose variables contain secrets."""

    def __enter__(self) -> None:
        """Begin the block."""

    def __exit__(self, _type: object, error: BaseException | None, _traceback: object) -> None:
        """Raise our error again, without the frames."""
        if isinstance(error, SnapshotExplorerError):
            raise error.with_traceback(None)


def with_bare_errors(call: Call) -> Call:
    """Decorate a function so that its errors have no frames of the function or its callees; see `bare_errors`."""

    @functools.wraps(call)
    def calling(*args: Any, **kwargs: Any) -> Any:
        with bare_errors():
            return call(*args, **kwargs)

    return cast("Call", calling)
