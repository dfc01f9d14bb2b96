"""Tokens to text one at a time, in whole characters."""

import codecs
from collections.abc import Sequence
from typing import Final

from radixgate.text.tokenizer import Tokenizer

_LONGEST_PREFIX: Final = 3  # bytes: a UTF-8 character has four at most


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
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
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
        return self._decoder.decode(data)

    def flush(self) -> str:
        """End of the output: what is still held comes to nothing, so this is always ""."""
        self._decoder.reset()
        self._of_prompt = b""
        return ""

    def check(self) -> None:
        """What must hold between any two tokens."""
        held, _ = self._decoder.getstate()
        assert len(held) + len(self._of_prompt) <= _LONGEST_PREFIX
        assert not (held and self._of_prompt), "two characters are open at once"

    def _resume(self, prior_output_ids: Sequence[int]) -> None:
        tail = self._tail(prior_output_ids)
        if len(tail) < _LONGEST_PREFIX:
            tail = self._finish_prompt(tail)
        else:  # three bytes settle whatever the prompt left open
            self._of_prompt = b""
        self._decoder.decode(_unfinished(tail))

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
            try:
                longer.decode()
            except UnicodeDecodeError as exc:
                if exc.reason != "unexpected end of data":
                    self._of_prompt = b""  # broken off: the prompt's, not ours to show
                    return data
                self._of_prompt, data = longer, data[1:]
                continue
            self._of_prompt = b""
            return longer + data[1:]
        return data


def _unfinished(tail: bytes) -> bytes:
    """The incomplete UTF-8 prefix at the end of these bytes, b"" if there is none."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    decoder.decode(tail)
    held, _ = decoder.getstate()
    return held
