"""The end of a stream that a foreign worker broke off by order: like its last events, and behind
them. What those do not say, such as the usage, is not made up."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import msgspec

from radixgate.proto import sse

_NATIVE = b"/generate"
_CHAT = b"/v1/chat/completions"
_json = msgspec.json.Encoder().encode
_Event = dict[str, object]
# As SGLang's own says it.
_ABORTED = {"type": "abort", "message": ""}


@dataclass(frozen=True, slots=True)
class BrokenStream:
    """What is known of it."""

    # The data of those that told of its choices, in their order: the last that came, and before
    # them, of each choice that had its finish, that one; of /generate of each choice the last.
    events: Sequence[bytes] = ()
    # Each text of /generate is what has come since the one before. None: the worker does not say.
    texts_are_news: bool | None = None


def end_behind(path: bytes, broken: BrokenStream, choices: int) -> bytes | None:
    """None: its events say nothing of the answer. `choices`: how many there are of all prompts, of
    which each that has had no finish gets one; 0: nobody knows, and those do that are told of."""
    events = [event for data in broken.events if (event := _read(data)) is not None]
    if path == _NATIVE:
        ends = [_json(end) for end in _native_ends(events, broken.texts_are_news, choices)]
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


def _native_ends(
    events: list[_Event], texts_are_news: bool | None, choices: int
) -> Iterator[_Event]:
    """Each event has all of its choice, or the news alone, which the end does not repeat."""
    told: dict[bytes, list[_Event]] = {}
    for event in events:
        told.setdefault(_json(event.get("index")), []).append(event)
    if texts_are_news is None:
        texts_are_news = _are_news([[event.get("text") for event in one] for one in told.values()])
    for of_choice in told.values():
        event = of_choice[-1]
        meta = event.get("meta_info")
        if not isinstance(meta, dict) or meta.get("finish_reason") is not None:
            continue
        end = {**event, "meta_info": {**meta, "finish_reason": _ABORTED}}
        ids, tokens = event.get("output_ids"), meta.get("completion_tokens")
        ids_are_news = isinstance(ids, list) and isinstance(tokens, int) and len(ids) < tokens
        if ids_are_news or (texts_are_news and "output_ids" in event):
            end["output_ids"] = []
        if (ids_are_news if texts_are_news is None else texts_are_news) and "text" in event:
            end["text"] = ""
        yield end
    if choices > 1:
        yield from _unbegun(events[-1:], [n for n in range(choices) if _json(n) not in told])


def _unbegun(like: list[_Event], choices: list[int]) -> Iterator[_Event]:
    """Of those that nothing has come of."""
    for event in like:
        empty: _Event = {"text": "", "output_ids": []}
        nothing = {key: value for key, value in empty.items() if key in event}
        for index in choices:
            meta = {"finish_reason": _ABORTED, "completion_tokens": 0}
            yield {**nothing, "meta_info": meta, "index": index}


def _are_news(texts_by_choice: list[list[object]]) -> bool | None:
    """Whether each text of a choice is what has come since the one before. Some releases of SGLang
    have news in the ids and all of the text beside them, and some have no ids: what tells is
    whether a text begins with the one before it. None: none tells, as of one event alone."""
    pairs = [
        (before, text)
        for texts in texts_by_choice
        for before, text in pairwise(texts)
        if isinstance(before, str) and isinstance(text, str) and before and before != text
    ]
    return not all(text.startswith(before) for before, text in pairs) if pairs else None


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
        for index in (range(choices) if choices else told)
        if index not in ended
    ]


def _choices_of(event: _Event) -> list[_Event]:
    choices = event.get("choices")
    if not isinstance(choices, list):
        return []
    return [choice for choice in choices if isinstance(choice, dict)]
