"""Tokens to text one at a time, in whole characters."""

import re
from collections.abc import Sequence
from typing import Final

from radixgate.text.tokenizer import Tokenizer

_LONGEST_PREFIX: Final = 3  # bytes: a UTF-8 character has four at most
# Ends that further bytes can still make a character, after the table of well-formed UTF-8 in the
# Unicode standard. (Python's own incremental decoder also waits after ED A0, where none can come.)
_UNFINISHED: Final = re.compile(
    rb"(?:[\xC2-\xDF]"
    rb"|(?:\xE0[\xA0-\xBF]?|[\xE1-\xEC\xEE\xEF][\x80-\xBF]?|\xED[\x80-\x9F]?)"
    rb"|\xF0(?:[\x90-\xBF][\x80-\xBF]?)?"
    rb"|[\xF1-\xF3](?:[\x80-\xBF][\x80-\xBF]?)?"
    rb"|\xF4(?:[\x80-\x8F][\x80-\xBF]?)?)\Z"
)


class Detokenizer:
    """The text of one output as it grows; cost of a token O(its bytes), whatever the length.

    Works on bytes. It holds back an unfinished UTF-8 prefix only, at most 3 bytes, so a token
    that stands for a real U+FFFD comes out at once. Bytes that can never become a character
    come out as U+FFFD, exactly as in `Tokenizer.decode` of the whole.

    An output that ends inside a character loses those bytes: nobody can tell what they would have
    become, and streamed and whole answers are alike in it.
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        skip_special_tokens: bool = True,
        *,
        prompt_ids: Sequence[int] = (),
        prior_output_ids: Sequence[int] = (),
    ) -> None:
        """Start after a prompt and after output that somebody else has already sent.

        A character that begins in the prompt and that the output finishes belongs to the output.
        If the output does not finish it, nothing stands for it. Only as many prior tokens are read
        as it takes to find the character that is still open.
        """
        self._bytes_of = tokenizer.token_bytes if skip_special_tokens else tokenizer.shown_bytes
        self._held = b""
        self._of_prompt = b""  # held bytes of a character that began in the prompt
        if prompt_ids:
            self._of_prompt = _unfinished(self._tail(prompt_ids))
        if prior_output_ids:
            self._resume(prior_output_ids)

    def push(self, token_id: int) -> str:
        """The characters that this token completes; often "" for a part of one."""
        data = self._bytes_of(token_id)
        if self._of_prompt:
            data = self._finish_prompt(data)
        data = self._held + data
        self._held = _unfinished(data)
        return data[: len(data) - len(self._held)].decode("utf-8", "replace")

    def flush(self) -> str:
        """End of the output: what is still held comes to nothing, so this is always ""."""
        self._held = self._of_prompt = b""
        return ""

    def check(self) -> None:
        """What must hold between any two tokens."""
        assert len(self._held) + len(self._of_prompt) <= _LONGEST_PREFIX
        assert not (self._held and self._of_prompt), "two characters are open at once"

    def _resume(self, prior_output_ids: Sequence[int]) -> None:
        tail = self._tail(prior_output_ids)
        if len(tail) < _LONGEST_PREFIX:
            tail = self._finish_prompt(tail)
        else:  # three bytes settle whatever the prompt left open
            self._of_prompt = b""
        self._held = _unfinished(tail)

    def _tail(self, ids: Sequence[int]) -> bytes:
        """The last bytes of these tokens, at least as many as a prefix can have, if there are."""
        tail = b""
        for token_id in reversed(ids):
            tail = self._bytes_of(token_id) + tail
            if len(tail) >= _LONGEST_PREFIX:
                break
        return tail

    def _finish_prompt(self, data: bytes) -> bytes:
        """Feed bytes to the prompt's open character; what is for the decoder afterwards."""
        while data and self._of_prompt:
            longer = self._of_prompt + data[:1]
            if _unfinished(longer) == longer:
                self._of_prompt, data = longer, data[1:]
                continue
            self._of_prompt = b""
            if _is_text(longer):
                return longer + data[1:]
            # Broken off: what began in the prompt is not ours to show.
        return data


def _unfinished(data: bytes) -> bytes:
    """The end of these bytes that can still become a character, b"" if there is none."""
    found = _UNFINISHED.search(data, max(0, len(data) - _LONGEST_PREFIX))
    return found.group() if found else b""


def _is_text(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True
