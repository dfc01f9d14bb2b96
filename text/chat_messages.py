"""Messages as clients send them, turned into the plain shape that chat templates read."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, TypeGuard

from radixgate.errors import RequestError


def for_template(messages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Content is a string there, and a tool call's arguments are an object: those messages that
    have it so, copies of the others.

    Keys we do not know stay: templates may. Raises RequestError that names the message. O(size).
    """
    return [
        message if _is_plain(message) else _message(message, f"messages[{place}]")
        for place, message in enumerate(messages)
    ]


def _is_plain(message: object) -> TypeGuard[dict[str, Any]]:
    return (
        type(message) is dict
        and type(message.get("content")) is str
        and type(message.get("role")) is str
        and not message.get("tool_calls")
    )


def _message(message: Mapping[str, Any], where: str) -> dict[str, Any]:
    if not isinstance(message, Mapping):
        raise _wrong(where, f"must be an object, not {type(message).__name__}")
    if not isinstance(message.get("role"), str):
        raise _wrong(f"{where}.role", "must be a string")
    plain = dict(message)
    plain["content"] = _text(message.get("content"), f"{where}.content")
    if message.get("tool_calls"):
        plain["tool_calls"] = _tool_calls(message["tool_calls"], f"{where}.tool_calls")
    return plain


def _text(content: object, where: str) -> str:
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        raise _wrong(where, f"must be a string or a list, not {type(content).__name__}")
    return "".join(_part(part, f"{where}[{place}]") for place, part in enumerate(content))


def _part(part: object, where: str) -> str:
    if not isinstance(part, Mapping):
        raise _wrong(where, "must be an object with a type")
    if part.get("type") != "text":
        raise _wrong(where, f"has type {part.get('type')!r}; this model reads only 'text'")
    if not isinstance(part.get("text"), str):
        raise _wrong(f"{where}.text", "must be a string")
    return str(part["text"])


def _tool_calls(calls: object, where: str) -> list[dict[str, Any]]:
    if not isinstance(calls, list):
        raise _wrong(where, "must be a list")
    return [_tool_call(call, f"{where}[{place}]") for place, call in enumerate(calls)]


def _tool_call(call: object, where: str) -> dict[str, Any]:
    function = call.get("function") if isinstance(call, Mapping) else None
    if not isinstance(call, Mapping) or not isinstance(function, Mapping):
        raise _wrong(where, "must be an object with a function")
    arguments = function.get("arguments")
    if isinstance(arguments, str):
        # Clients send the arguments as JSON text; templates dump them themselves.
        try:
            arguments = json.loads(arguments) if arguments else {}
        except (ValueError, RecursionError) as exc:
            raise _wrong(f"{where}.function.arguments", f"is not JSON: {exc}") from exc
    return {**call, "function": {**function, "arguments": arguments}}


def _wrong(where: str, what: str) -> RequestError:
    return RequestError(f"{where} {what}", param=where)
