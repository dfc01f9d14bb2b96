"""From what a client wrote to the ids of the prompt."""

from array import array
from collections.abc import Mapping, Sequence
from typing import Any

from radixgate.text.bundle import TokenizerBundle
from radixgate.text.chat_template import ChatTemplate
from radixgate.text.cut_points import cut_points
from radixgate.text.segment_cache import SegmentCache
from radixgate.text.tokenizer import Tokenizer

DEFAULT_BUDGET_CHARS = 16_000_000


class PromptEncoder:
    """One model's template and tokenizer with a cache of what they have seen.

    Any thread may call it; tokenizing releases the interpreter lock, so call it from one that is
    not the event loop's. A grown conversation costs only its new messages.
    """

    def __init__(self, bundle: bytes, budget_chars: int = DEFAULT_BUDGET_CHARS) -> None:
        """From the bytes that a worker streams. Raises ModelError."""
        self.tokenizer = Tokenizer.from_bundle(bundle)
        self.highest_id = self.tokenizer.vocab_size - 1
        self._template = ChatTemplate.from_bundle(bundle)
        cuts = cut_points(TokenizerBundle.unpack(bundle).tokenizer)
        self.cache = SegmentCache(self.tokenizer.encode_batch, cuts, budget_chars)

    def encode_text(self, text: str) -> "array[int]":
        """Special tokens in the text are read as such.

        The ids begin with the model's start token where it has one: once, even if the text
        begins with it as well.
        """
        ids, start = self.cache.encode(text), self.tokenizer.start_ids
        return ids if ids[: len(start)] == start else start + ids

    def render_messages(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        tools: Sequence[Any] | None,
        template_kwargs: Mapping[str, Any] | None,
    ) -> str:
        """Raises RequestError naming `messages` or `chat_template_kwargs`."""
        return self._template.render(messages, tools=tools, template_kwargs=template_kwargs)

    def encode_rendered(self, text: str) -> "array[int]":
        """A template writes the start token itself."""
        return self.cache.encode(text)

    def unknown_chars(self, text: str) -> int:
        """How much of it has to be tokenized; the rest is kept. O(len(text))."""
        return self.cache.unknown_chars(text)

    def encode_messages(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        tools: Sequence[Any] | None,
        template_kwargs: Mapping[str, Any] | None,
    ) -> "array[int]":
        """Raises as `render_messages`."""
        text = self.render_messages(messages, tools=tools, template_kwargs=template_kwargs)
        return self.encode_rendered(text)
