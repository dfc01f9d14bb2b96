"""A prompt in the forms that the endpoints take."""

from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Protocol

import msgspec

from radixgate.errors import ConfigError

_TokenId = Annotated[int, msgspec.Meta(ge=0, lt=2**32)]


class SentPrompt(Protocol):
    """One prompt. A form that it has not raises ConfigError with the way out."""

    def native(self) -> dict[str, object]:
        """The fields of a `/generate` body."""
        ...

    def completion(self) -> object:
        """The `prompt` of `/v1/completions`."""
        ...

    def messages(self) -> Sequence[Mapping[str, object]]:
        """The `messages` of `/v1/chat/completions`."""
        ...

    def row(self) -> dict[str, object]:
        """As a schedule file holds it; `prompt_of_row` reads it back."""
        ...

    def units(self) -> tuple[bytes, int]:
        """Bytes whose common beginnings are what a prefix cache can share, and bytes a unit."""
        ...


@dataclass(frozen=True, slots=True)
class TextPrompt:
    """Plain text; as a chat it is one message of the user."""

    text: str

    def native(self) -> dict[str, object]:
        return {"text": self.text}

    def completion(self) -> object:
        return self.text

    def messages(self) -> Sequence[Mapping[str, object]]:
        return [{"role": "user", "content": self.text}]

    def row(self) -> dict[str, object]:
        return {"text": self.text}

    def units(self) -> tuple[bytes, int]:
        return self.text.encode(), 1


@dataclass(frozen=True, slots=True)
class IdsPrompt:
    """Token ids: exact lengths, and no tokenizer at work."""

    ids: tuple[int, ...]

    def native(self) -> dict[str, object]:
        return {"input_ids": self.ids}

    def completion(self) -> object:
        return self.ids

    def messages(self) -> Sequence[Mapping[str, object]]:
        raise ConfigError(
            "token ids cannot be sent as chat messages: use --backend sglang or openai, "
            "or --dataset-name random"
        )

    def row(self) -> dict[str, object]:
        return {"input_ids": self.ids}

    def units(self) -> tuple[bytes, int]:
        ids = array("I", self.ids)
        return ids.tobytes(), ids.itemsize


@dataclass(frozen=True, slots=True)
class ChatPrompt:
    """Messages as (role, content) pairs."""

    turns: tuple[tuple[str, str], ...]

    def native(self) -> dict[str, object]:
        raise self._needs_chat("/generate")

    def completion(self) -> object:
        raise self._needs_chat("/v1/completions")

    def messages(self) -> Sequence[Mapping[str, object]]:
        return [{"role": role, "content": content} for role, content in self.turns]

    def row(self) -> dict[str, object]:
        return {"messages": self.turns}

    def units(self) -> tuple[bytes, int]:
        return "\n".join(f"{role}\n{content}" for role, content in self.turns).encode(), 1

    def _needs_chat(self, path: str) -> ConfigError:
        return ConfigError(
            f"messages cannot be sent to {path}: use --backend openai-chat, "
            "or give the file a `prompt` instead of `messages`"
        )


def prompt_of_row(row: Mapping[str, object]) -> SentPrompt:
    """The prompt of a schedule file's row.

    Raises ConfigError for a row without one, msgspec.ValidationError for one that is none.
    """
    match row:
        case {"text": str(text)}:
            return TextPrompt(text)
        case {"input_ids": list(ids)}:
            return IdsPrompt(msgspec.convert(ids, tuple[_TokenId, ...]))
        case {"messages": list(turns)}:
            return ChatPrompt(msgspec.convert(turns, tuple[tuple[str, str], ...]))
    raise ConfigError("a row of a schedule needs text, input_ids or messages")
