"""Reading a generation request that foreign workers will answer: enough to route and to refuse.

A foreign engine has extensions that we do not know, so nothing is refused for being unknown: only
what every engine must refuse, before any worker is asked. The bytes go on as they came.
"""

from array import array
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import msgspec

from radixgate.errors import RequestError
from radixgate.proto.fields import as_token_ids, kind_of
from radixgate.proto.routing_text import message_bytes

Body = Mapping[str, object]


class ForeignRequest(msgspec.Struct, frozen=True, gc=False):
    """What routing needs of a request."""

    prompt: bytes  # grows as the conversation grows; of several prompts, the first
    session: str | None
    priority: int
    salt: str | None


def read_foreign(path: bytes, body: Body) -> ForeignRequest:
    """Raises RequestError naming the field at fault. About 3 us besides the prompt's bytes."""
    prompt = _READERS[path](body)
    stream = body.get("stream")
    if stream is not None and stream is not True and stream is not False:
        raise _wrong("stream", "true or false", stream)
    priority = body.get("priority")
    return ForeignRequest(
        prompt=prompt,
        session=_text(body, "session_id") or _text(body, "user"),
        priority=priority if type(priority) is int else 0,
        salt=_text(body, "cache_salt") or _text(body, "extra_key"),
    )


def _read_chat(body: Body) -> bytes:
    _check_ranges(body, _OPENAI_RANGES, "")
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        raise RequestError("messages must be an array with at least one message", param="messages")
    for place, message in enumerate(messages):
        if not isinstance(message, dict):
            raise _wrong(f"messages[{place}]", "an object", message)
        if not isinstance(message.get("role"), str):
            raise _wrong(f"messages[{place}].role", "a string", message.get("role"))
        content = message.get("content")
        if content is not None and not isinstance(content, str | list):
            raise _wrong(f"messages[{place}].content", "a string or an array of parts", content)
    tools = body.get("tools")
    if tools is not None and not isinstance(tools, list):
        raise _wrong("tools", "an array", tools)
    return message_bytes(messages, tools)


def _read_completion(body: Body) -> bytes:
    _check_ranges(body, _OPENAI_RANGES, "")
    return _prompt_bytes(body.get("prompt"), "prompt")


def _read_native(body: Body) -> bytes:
    params = body.get("sampling_params")
    for one in params if isinstance(params, list) else (params,):
        if one is None:
            continue
        if not isinstance(one, dict):
            raise _wrong("sampling_params", "an object", one)
        _check_ranges(one, _NATIVE_RANGES, "sampling_params.")
    given = [name for name in ("text", "input_ids", "input_embeds") if body.get(name) is not None]
    if len(given) != 1:
        raise RequestError("give one of text, input_ids and input_embeds", param="text")
    if given[0] == "input_embeds":
        return b""
    return _prompt_bytes(body[given[0]], given[0])


_READERS: Mapping[bytes, Callable[[Body], bytes]] = {
    b"/v1/chat/completions": _read_chat,
    b"/v1/completions": _read_completion,
    b"/generate": _read_native,
}
HOT_PATHS = frozenset(_READERS)


def _prompt_bytes(prompt: object, where: str) -> bytes:
    """A text, token ids, or an array of either; of an array the first decides the route."""
    if isinstance(prompt, list) and prompt and isinstance(prompt[0], str | list):
        for place, item in enumerate(prompt):
            if not isinstance(item, type(prompt[0])):
                raise _wrong(f"{where}[{place}]", kind_of(prompt[0]), item)
        prompt = prompt[0]
    if isinstance(prompt, str):
        return prompt.encode("utf-8", "surrogatepass")
    if isinstance(prompt, list) and prompt:
        ids: array[int] = as_token_ids(prompt, where)
        return ids.tobytes()
    raise _wrong(where, "a text, token ids, or a non-empty array of either", prompt)


@dataclass(frozen=True, slots=True)
class _Range:
    """What a number must be in any engine. Open at the bottom if `over`."""

    low: float
    high: float = float("inf")
    over: bool = False
    whole: bool = False


_SAMPLING_RANGES = {
    "temperature": _Range(0.0),
    "top_p": _Range(0.0, 1.0, over=True),
    "min_p": _Range(0.0, 1.0),
    "n": _Range(1, whole=True),
}
_OPENAI_RANGES = {
    **_SAMPLING_RANGES,
    "max_tokens": _Range(1, whole=True),
    "max_completion_tokens": _Range(1, whole=True),
}
_NATIVE_RANGES = {**_SAMPLING_RANGES, "max_new_tokens": _Range(0, whole=True)}


def _check_ranges(values: Body, ranges: Mapping[str, _Range], path: str) -> None:
    for name, value in values.items():
        if value is None or name not in ranges:
            continue
        limits = ranges[name]
        if type(value) is not int and (limits.whole or type(value) is not float):
            raise _wrong(path + name, "an integer" if limits.whole else "a number", value)
        assert isinstance(value, int | float)
        if not limits.low <= value <= limits.high or (limits.over and value == limits.low):
            least = f"over {limits.low:g}" if limits.over else f"at least {limits.low:g}"
            most = "" if limits.high == float("inf") else f" and at most {limits.high:g}"
            raise RequestError(
                f"{path}{name} must be {least}{most}, not {value!r:.40}", param=path + name
            )


def _text(body: Body, name: str) -> str | None:
    value = body.get(name)
    return value if isinstance(value, str) else None


def _wrong(where: str, expected: str, found: object) -> RequestError:
    return RequestError(f"{where} must be {expected}, not {kind_of(found)}", param=where)
