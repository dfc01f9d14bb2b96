"""What stands in a chat's body beside the conversation: the same, request after request."""

from collections.abc import Mapping

import msgspec

from radixgate.proto.generation import GenerationRequest
from radixgate.proto.openai import chat_prompt, parse_chat

# Bodies that set the same are few; all are forgotten at once, and read again as they come again.
MAX_SETTINGS = 1_024
MAX_SETTINGS_BYTES = 512
_CONVERSATION = ("messages", "tools")
# Besides the model these are numbers and flags. What else a client may write, a seed too, is its
# own: of that nothing is kept, nor told by how long this takes.
_PLAIN = frozenset(
    (
        *("model", "stream", "stream_options", "priority"),
        *("max_tokens", "max_completion_tokens", "min_tokens", "ignore_eos", "n"),
        *("temperature", "top_p", "top_k", "min_p"),
        *("presence_penalty", "frequency_penalty", "repetition_penalty"),
        *("logprobs", "top_logprobs"),
    )
)
_OPTIONS = frozenset(("include_usage", "continuous_usage_stats"))
_written = msgspec.json.Encoder().encode


class KnownSettings:
    """`parse_chat` with a memory of what stood there and was good."""

    def __init__(self, most: int = MAX_SETTINGS) -> None:
        self._most = most
        self._known: dict[bytes, GenerationRequest] = {}

    def __len__(self) -> int:
        return len(self._known)

    def parse_chat(self, body: Mapping[str, object]) -> GenerationRequest:
        """As `parse_chat`; what is known takes a third of the time."""
        key = _key(body)
        if key is None:
            return parse_chat(body)
        known = self._known.get(key)
        if known is not None:
            return msgspec.structs.replace(known, prompts=(chat_prompt(body),))
        request = parse_chat(body)
        if len(self._known) >= self._most:
            self._known.clear()
        self._known[key] = msgspec.structs.replace(request, prompts=())
        return request


def _key(body: Mapping[str, object]) -> bytes | None:
    """Written as JSON, so that 1, 1.0 and true differ. None: there is more than settings."""
    settings = {name: value for name, value in body.items() if name not in _CONVERSATION}
    if not _PLAIN.issuperset(settings):
        return None
    for name, value in settings.items():
        if value is None or isinstance(value, bool | int | float):
            continue
        if name == "model" and isinstance(value, str):
            continue
        if name == "stream_options" and isinstance(value, dict) and _are_flags(value):
            continue
        return None
    key = _written(settings)
    return key if len(key) <= MAX_SETTINGS_BYTES else None


def _are_flags(options: Mapping[str, object]) -> bool:
    return _OPTIONS.issuperset(options) and all(isinstance(one, bool) for one in options.values())
