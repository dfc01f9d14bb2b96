"""A prompt that is many times too long, seen by its beginning."""

from radixgate.errors import RequestError
from radixgate.proto.generation import Encoder, Prompt

# Of a text that is longer than a context of such long tokens, pieces are encoded first. At each cut
# so many tokens at most are others than in the whole text.
_LOOKED_AT_CHARS_A_TOKEN, _LOOKED_AT_CHARS, _CUT_TOKENS = 8, 4_096, 64


def check_length(prompt: Prompt, size: int, encoder: Encoder, context_length: int) -> None:
    """A text many times too long is not encoded to its end: for a minute nobody else's would be.
    Of one that fits nothing is encoded here unless it has eight characters a token.

    `size`: bytes of all that the client wrote. Raises RequestError.
    """
    slice_chars = _LOOKED_AT_CHARS_A_TOKEN * context_length + _LOOKED_AT_CHARS
    if size <= slice_chars:
        return
    text, at, tokens = prompt.text(encoder), 0, 0
    # Each slice is twice as long as the one before, so that there are few cuts.
    while at + slice_chars < len(text):
        end = at + slice_chars
        tokens += len(encoder.encode_text(text[at:end])) - _CUT_TOKENS
        if tokens >= context_length:
            raise RequestError(
                f"{prompt.field} has far more than {context_length} tokens; the context of"
                f" {context_length} leaves no room for an answer: shorten it",
                param=prompt.field,
                code="context_length_exceeded",
            )
        at, slice_chars = end, 2 * slice_chars
