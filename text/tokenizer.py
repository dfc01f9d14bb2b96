"""Text to token ids and back, exactly as the model's own tokenizer has it."""

from array import array
from collections.abc import Iterable
from typing import Any

import msgspec
import tokenizers
import xxhash

from radixgate.errors import ModelError
from radixgate.text.bundle import TokenizerBundle
from radixgate.text.decoders import bytes_of_token

# Several texts at once are spread over the library's own threads. To wake them, and to have them
# look for more, takes 0.4 ms of the processor, as long as a thousand characters and more.
IN_A_ROW_CHARS = 4_096


class _Document(msgspec.Struct):
    """The one part of a tokenizer.json that is read here."""

    decoder: dict[str, Any] | None = None


class Tokenizer:
    """One model's vocabulary. Immutable after construction; any thread may use it.

    Text of special tokens (`<|im_end|>`) in an input becomes the special token, as everywhere. A
    vocabulary that lacks some byte drops it without a word, as the reference does (SmolLM2 has
    no 0x04, for one). `start_ids` are what a prompt in plain text must begin with; a chat
    template writes them itself.
    """

    def __init__(self, bundle: TokenizerBundle, bundle_hash: str) -> None:
        """O(vocabulary), about 0.3 s for 49k tokens. Raises ModelError."""
        self.hash = bundle_hash
        self.eos_token_ids = frozenset(bundle.eos_token_ids)
        to_bytes = bytes_of_token(_decoder(bundle.tokenizer))
        try:
            self._inner = tokenizers.Tokenizer.from_buffer(bytes(bundle.tokenizer))
        except Exception as exc:  # the library raises bare Exception for a bad document
            raise ModelError(f"tokenizer.json: {exc}") from exc
        # A tokenizer saved in training may cut or pad; a prompt must stay whole.
        self._inner.no_truncation()
        self._inner.no_padding()

        vocabulary = self._inner.get_vocab(with_added_tokens=True)
        self.vocab_size = max(vocabulary.values(), default=-1) + 1
        self._bytes = [b""] * self.vocab_size
        for token, token_id in vocabulary.items():
            self._bytes[token_id] = to_bytes(token)
        self._special: dict[int, str] = {}
        for token_id, added in self._inner.get_added_tokens_decoder().items():
            if added.special:
                self._special[token_id] = added.content
            self._bytes[token_id] = b"" if added.special else added.content.encode()
        self.special_ids = frozenset(self._special)
        self.start_ids = array("I", self._start_ids())

    @classmethod
    def from_bundle(cls, data: bytes) -> "Tokenizer":
        """From the bytes that a worker streams; `hash` is xxh3_128 of them. Raises ModelError."""
        return cls(TokenizerBundle.unpack(data), xxhash.xxh3_128_hexdigest(data))

    def encode(self, text: str, add_special_tokens: bool = False) -> "array[int]":
        """Token ids of a text, 4 bytes each. O(len(text)); holds the interpreter lock."""
        encoding = self._inner.encode(text, add_special_tokens=add_special_tokens)
        return array("I", encoding.ids)

    def encode_batch(
        self, texts: list[str], add_special_tokens: bool = False
    ) -> "list[array[int]]":
        """Token ids of each text, 0.2 to 0.7 us a character. Releases the interpreter lock."""
        encode = self._inner.encode_batch_fast
        if sum(map(len, texts)) <= IN_A_ROW_CHARS:
            encodings = [encode([text], add_special_tokens=add_special_tokens)[0] for text in texts]
        else:
            encodings = encode(texts, add_special_tokens=add_special_tokens)
        return [array("I", encoding.ids) for encoding in encodings]

    def decode(self, ids: Iterable[int], skip_special_tokens: bool = True) -> str:
        """The text of a whole output. O(len(ids)).

        Bytes that are no UTF-8, an unfinished last character too, become U+FFFD. (A stream has no
        such tail: see Detokenizer.)
        """
        if skip_special_tokens:
            data = b"".join(map(self.token_bytes, ids))
        else:
            data = b"".join(map(self.shown_bytes, ids))
        return data.decode("utf-8", "replace")

    def _start_ids(self) -> list[int]:
        """What the post-processor puts before a text: Llama's start token, nothing for others."""
        bare = self._inner.encode("a", add_special_tokens=False).ids
        framed = self._inner.encode("a", add_special_tokens=True).ids
        after = next((n for n in range(len(framed)) if framed[n : n + len(bare)] == bare), 0)
        return list(framed[:after])

    def token_bytes(self, token_id: int) -> bytes:
        """The bytes a token stands for: maybe a part of a character.

        b"" for a special token, and for an id that is no token (embeddings are often padded).
        """
        return self._bytes[token_id] if 0 <= token_id < self.vocab_size else b""

    def special_text(self, token_id: int) -> str:
        """What a special token looks like where it is shown; "" for every other id."""
        return self._special.get(token_id, "")

    def shown_bytes(self, token_id: int) -> bytes:
        """`token_bytes`, but a special token is its text."""
        return self.token_bytes(token_id) or self.special_text(token_id).encode()


def _decoder(document: msgspec.Raw) -> dict[str, Any] | None:
    try:
        return msgspec.json.decode(document, type=_Document).decoder
    except msgspec.MsgspecError as exc:
        raise ModelError(f"tokenizer.json: {exc}") from exc
