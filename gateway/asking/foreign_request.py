"""Reading a generation request that foreign workers will answer: enough to route and to refuse.

A foreign engine has extensions that we do not know, so nothing is refused for being unknown: only
what every engine must refuse, before any worker is asked. The bytes go on as they came. The body is
read into types that name just what is looked at; the decoder passes over the rest.
"""

import re
from array import array
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated

import msgspec
from msgspec import Meta, Raw, structs

from radixgate.errors import RequestError
from radixgate.proto.fields import as_token_ids, nearest_priority
from radixgate.proto.routing_text import MESSAGE_END, message_pieces, parts_bytes

# Some clients know one kind of number, and 2.0 is 2 to an engine too.
_AtLeastOne = Annotated[int, Meta(ge=1)] | Annotated[float, Meta(ge=1, multiple_of=1)]
_Count = Annotated[int, Meta(ge=0)] | Annotated[float, Meta(ge=0, multiple_of=1)]
_NotNegative = Annotated[float, Meta(ge=0.0)]
_Share = Annotated[float, Meta(ge=0.0, le=1.0)]
_PositiveShare = Annotated[float, Meta(gt=0.0, le=1.0)]


class ForeignRequest(msgspec.Struct, frozen=True, gc=False):
    """What routing needs of a request."""

    model: str | None  # None: the client named none
    prompt: bytes  # grows as the conversation grows; of several prompts, the first
    session: str | None
    priority: int
    salt: str | None
    adapters: tuple[str, ...] = ()  # as SGLang names them beside the model; of a batch, each once
    goes_on_from: str | None = None  # a response that a worker has stored; None: none
    stores: bool = False  # the answer, so that another request can go on from it


class _Common(msgspec.Struct, frozen=True):
    """Looked at in every body; a field that an engine knows in another type is not refused."""

    model: str | None = None
    stream: bool | None = None
    session_id: object = None
    user: object = None
    priority: object = None
    cache_salt: object = None
    extra_key: object = None
    lora_path: object = None


class _Sampling(msgspec.Struct, frozen=True):
    temperature: _NotNegative | None = None
    top_p: _PositiveShare | None = None
    min_p: _Share | None = None
    n: _AtLeastOne | None = None
    max_new_tokens: _Count | None = None


class _OpenAi(_Common, frozen=True):
    temperature: _NotNegative | None = None
    top_p: _PositiveShare | None = None
    min_p: _Share | None = None
    n: _AtLeastOne | None = None


_NO_CALLS = Raw(b"")


class _Message(msgspec.Struct, frozen=True):
    role: str
    content: str | list[Raw] | None = None
    tool_calls: Raw = _NO_CALLS


_Messages = Annotated[list[_Message], Meta(min_length=1)]


class _Chat(_OpenAi, frozen=True, kw_only=True):
    messages: _Messages
    max_tokens: _AtLeastOne | None = None
    max_completion_tokens: _AtLeastOne | None = None
    tools: list[Raw] | None = None


class _Completion(_OpenAi, frozen=True, kw_only=True):
    prompt: str | list[object] | None = None
    prompt_embeds: Raw = Raw(b"null")
    max_tokens: _Count | None = None  # 0: the prompt is scored


class _Native(_Common, frozen=True):
    text: str | list[str] | None = None
    input_ids: list[object] | None = None
    input_embeds: Raw = Raw(b"null")
    sampling_params: _Sampling | list[_Sampling] | None = None


class _Embeddings(_Common, frozen=True, kw_only=True):
    input: str | list[object] | None = None
    text: str | list[object] | None = None  # as SGLang calls it where it classifies
    messages: _Messages | None = None


class _Rerank(_Common, frozen=True, kw_only=True):
    query: str | dict[str, Raw]


class _Response(_OpenAi, frozen=True, kw_only=True):
    input: str | list[object] = ""
    instructions: str | None = None
    tools: list[Raw] | None = None
    previous_response_id: object = None
    store: object = None
    conversation: object = None


def read_foreign(path: bytes, body: bytes) -> ForeignRequest:
    """Raises RequestError naming the field at fault. About 3 us besides the prompt's bytes."""
    try:
        return _READERS[path](body)
    except msgspec.ValidationError as exc:
        raise _refusal(str(exc)) from exc
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as exc:
        raise RequestError(f"the body is not valid JSON: {exc}", param="body") from exc


def _read_chat(body: bytes) -> ForeignRequest:
    read = _decode_chat(body)
    pieces = [] if read.tools is None else [*map(bytes, read.tools), MESSAGE_END]
    return _request(read, b"".join(pieces + _pieces_of(read.messages)))


def _read_completion(body: bytes) -> ForeignRequest:
    read = _decode_completion(body)
    if read.prompt is not None:
        return _request(read, _prompt_bytes(read.prompt, "prompt"))
    if bytes(read.prompt_embeds) == b"null":
        raise RequestError("prompt: is required", param="prompt")
    return _request(read, b"")


def _read_native(body: bytes) -> ForeignRequest:
    read = _decode_native(body)
    embedded = bytes(read.input_embeds) != b"null"
    if (read.text is not None) + (read.input_ids is not None) + embedded != 1:
        raise RequestError("give one of text, input_ids and input_embeds", param="text")
    if embedded:
        return _request(read, b"")
    if read.text is not None:
        return _request(read, _prompt_bytes(read.text, "text"))
    return _request(read, _prompt_bytes(read.input_ids or (), "input_ids"))


def _read_embeddings(body: bytes) -> ForeignRequest:
    read = _decode_embeddings(body)
    if read.messages is not None:
        return _request(read, b"".join(_pieces_of(read.messages)))
    where, given = ("input", read.input) if read.text is None else ("text", read.text)
    if given is None:
        raise RequestError("input: is required", param="input")
    if isinstance(given, list) and given and all(isinstance(item, dict) for item in given):
        return _request(read, msgspec.json.encode(given[0]))
    return _request(read, _prompt_bytes(given, where))


def _read_rerank(body: bytes) -> ForeignRequest:
    read = _decode_rerank(body)
    query = read.query
    return _request(read, query.encode() if isinstance(query, str) else msgspec.json.encode(query))


def _read_response(body: bytes) -> ForeignRequest:
    """What came before may be named instead of sent."""
    read = _decode_response(body)
    pieces = [] if read.tools is None else [*map(bytes, read.tools), MESSAGE_END]
    pieces += message_pieces("system", read.instructions, b"")
    for item in [read.input] if isinstance(read.input, str) else read.input:
        if isinstance(item, dict) and isinstance(item.get("role"), str):
            pieces += message_pieces(item["role"], item.get("content"), b"")
        else:
            pieces += message_pieces("user", item, b"")
    previous = _text(read.previous_response_id)
    request = _request(read, b"".join(pieces), _text(read.conversation) or previous)
    return structs.replace(request, goes_on_from=previous, stores=read.store is not False)


_decode_chat = msgspec.json.Decoder(_Chat).decode
_decode_completion = msgspec.json.Decoder(_Completion).decode
_decode_native = msgspec.json.Decoder(_Native).decode
_decode_embeddings = msgspec.json.Decoder(_Embeddings).decode
_decode_rerank = msgspec.json.Decoder(_Rerank).decode
_decode_response = msgspec.json.Decoder(_Response).decode
# Our own workers answer these; what follows below is passed to foreign ones only.
GENERATION_PATHS = frozenset((b"/v1/chat/completions", b"/v1/completions", b"/generate"))
_READERS: Mapping[bytes, Callable[[bytes], ForeignRequest]] = {
    b"/v1/chat/completions": _read_chat,
    b"/v1/completions": _read_completion,
    b"/generate": _read_native,
    b"/v1/embeddings": _read_embeddings,
    b"/v1/classify": _read_embeddings,
    b"/v1/rerank": _read_rerank,
    b"/rerank": _read_rerank,
    b"/v1/responses": _read_response,
}
HOT_PATHS = frozenset(_READERS)


def _request(read: _Common, prompt: bytes, session: str | None = None) -> ForeignRequest:
    # What engines take as one; whether anything else is wrong, they know.
    priority = 0 if read.priority is None else nearest_priority(read.priority)
    if not session and (read.session_id is not None or read.user is not None):
        session = _text(read.session_id) or _text(read.user)
    salt = None
    if read.cache_salt is not None or read.extra_key is not None:
        salt = _text(read.cache_salt) or _text(read.extra_key)
    adapters = () if read.lora_path is None else _adapters(read.lora_path)
    return ForeignRequest(read.model, prompt, session, priority, salt, adapters)


def _adapters(given: object) -> tuple[str, ...]:
    named = given if isinstance(given, list) else [given]
    return tuple(dict.fromkeys([one for one in named if isinstance(one, str) and one]))


def _pieces_of(messages: Sequence[_Message]) -> list[bytes]:
    pieces: list[bytes] = []
    for one in messages:
        content = parts_bytes(one.content) if isinstance(one.content, list) else one.content
        pieces += message_pieces(one.role, content, bytes(one.tool_calls))
    return pieces


def _prompt_bytes(prompt: str | Sequence[object], where: str) -> bytes:
    """A text, token ids, or an array of either; of an array the first decides the route."""
    if isinstance(prompt, str):
        return prompt.encode("utf-8", "surrogatepass")
    if not prompt:
        raise RequestError(f"{where} is empty", param=where)
    first = prompt[0]
    if isinstance(first, int | float):
        ids: array[int] = as_token_ids(list(prompt), where)
        return ids.tobytes()
    for place, item in enumerate(prompt):
        if type(item) is not type(first) or not isinstance(item, str | list):
            raise RequestError(
                f"{where} must hold texts, or token ids, or arrays of token ids",
                param=f"{where}[{place}]",
            )
    assert isinstance(first, str | list)
    return _prompt_bytes(first, where)


_WHERE = re.compile(r"(.*?)(?: - at `\$\.?(.*)`)?", re.DOTALL)
_MISSING = re.compile(r"Object missing required field `(\w+)`")


def _refusal(said: str) -> RequestError:
    """The decoder's objection, as one that names the field in OpenAI's way."""
    match = _WHERE.fullmatch(said)
    what, where = (match[1], match[2] or "") if match else (said, "")
    missing = _MISSING.fullmatch(what)
    if missing:
        where, what = f"{where}.{missing[1]}".lstrip("."), "is required"
    what = what.replace("`float` that's a multiple of 1.0", "a whole number").replace("`", "")
    return RequestError(f"{where or 'body'}: {what}", param=where or "body")


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None
