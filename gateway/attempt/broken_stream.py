"""The end of a stream that a foreign worker broke off by order: like its last events, and behind
them. What those do not say, such as the usage, is not made up."""

from collections.abc import Iterable
from itertools import pairwise

import msgspec

from radixgate.proto import sse

_NATIVE = b"/generate"
_CHAT = b"/v1/chat/completions"
_json = msgspec.json.Encoder().encode
_Event = dict[str, object]
# As SGLang's own says it.
_ABORTED = {"type": "abort", "message": ""}


def end_behind(path: bytes, last_events: Iterable[bytes], choices: int) -> bytes | None:
    """None: the events say nothing of the answer. `last_events`: the data of each, in their order;
    `choices`: how many there are of all prompts; 0: nobody knows. Of several those end of which the
    events tell: one of which they do not may have had its finish before them."""
    events = [event for data in last_events if (event := _read(data)) is not None]
    if path == _NATIVE:
        ends = [_json(end) for end in _native_ends(events)]
    else:
        ends = [_json(end) for end in _openai_ends(events, choices, chat=path == _CHAT)]
    return b"".join([*map(sse.event, ends), sse.DONE]) if events else None


def _read(data: bytes) -> _Event | None:
    try:
        event = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None  # cut, or the end marker
    return (
        event if isinstance(event, dict) and ("choices" in event or "meta_info" in event) else None
    )


def _native_ends(events: list[_Event]) -> list[_Event]:
    """Each event has all of its choice, or the news alone, which the end does not repeat. A choice
    of which none is known gets no end: it would take its text away."""
    told: dict[bytes, list[_Event]] = {}
    for event in events:
        told.setdefault(_json(event.get("index")), []).append(event)
    ends = []
    for of_choice in told.values():
        event = of_choice[-1]
        meta = event.get("meta_info")
        if not isinstance(meta, dict) or meta.get("finish_reason") is not None:
            continue
        end = {**event, "meta_info": {**meta, "finish_reason": _ABORTED}}
        ids, tokens = event.get("output_ids"), meta.get("completion_tokens")
        ids_are_news = isinstance(ids, list) and isinstance(tokens, int) and len(ids) < tokens
        if ids_are_news:
            end["output_ids"] = []
        if _is_news([event.get("text") for event in of_choice], otherwise=ids_are_news):
            end["text"] = ""
        ends.append(end)
    return ends


def _is_news(texts: list[object], *, otherwise: bool) -> bool:
    """Whether each text of a choice is what has come since the one before. Some releases of SGLang
    have news in the ids and all of the text beside them, and some have no ids: what tells is
    whether a text begins with the one before it. `otherwise`: where none tells, as of one event
    alone. That is all of its choice, which is SGLang's default, unless its ids are too few."""
    pairs = [
        (before, text)
        for before, text in pairwise(texts)
        if isinstance(before, str) and isinstance(text, str) and before and before != text
    ]
    if not pairs:
        return otherwise
    return not all(text.startswith(before) for before, text in pairs)


def _openai_ends(events: list[_Event], choices: int, *, chat: bool) -> list[_Event]:
    if not events:
        return []
    said = [choice for event in events for choice in _choices_of(event)]
    ended = [choice.get("index") for choice in said if choice.get("finish_reason") is not None]
    told = sorted({index for choice in said if isinstance(index := choice.get("index"), int)})
    news: _Event = {"delta": {"content": ""}} if chat else {"text": ""}
    finish: _Event = {"logprobs": None, "finish_reason": "abort"}
    return [
        {**events[-1], "choices": [{"index": index, **news, **finish}]}
        for index in (range(1) if choices == 1 else told)
        if index not in ended
    ]


def _choices_of(event: _Event) -> list[_Event]:
    choices = event.get("choices")
    if not isinstance(choices, list):
        return []
    return [choice for choice in choices if isinstance(choice, dict)]
