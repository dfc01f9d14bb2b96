"""All that turns text into a model's tokens and back, as one JSON document that can be streamed."""

import msgspec

from radixgate.errors import ModelError


class TokenizerBundle(msgspec.Struct, frozen=True, kw_only=True):
    """What a worker hands out of its tokenizer; the bytes on the wire are `pack` of it."""

    tokenizer: msgspec.Raw  # a tokenizer.json document, kept as it is
    chat_template: str | None = None  # Jinja source; None: the model brings none
    bos_token: str | None = None  # None: there is no such token
    eos_token: str | None = None
    eos_token_ids: list[int] = []  # every token that ends an answer; empty: only a limit ends it

    def pack(self) -> bytes:
        """The document as bytes: the same bundle always gives the same bytes."""
        return msgspec.json.encode(self)

    @classmethod
    def unpack(cls, data: bytes) -> "TokenizerBundle":
        """Read what `pack` wrote, or any JSON with these keys. Raises ModelError."""
        try:
            return msgspec.json.decode(data, type=cls)
        except msgspec.MsgspecError as exc:
            raise ModelError(f"tokenizer bundle of {len(data)} bytes: {exc}") from exc
