"""Small random models made by `transformers`, and what they answer: the truth for our readers."""

import os
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, Final, Protocol

import msgspec
import torch

from radixgate.worker.weights.checkpoint import HEAD
from tiny_llama import DOCUMENT, VOCABULARY

SIZES: Final = {
    "vocab_size": len(VOCABULARY),
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 256,
    "tie_word_embeddings": False,
}


def rope(kind: str, **numbers: float) -> dict[str, Any]:
    """A base with short waves, so that every frequency turns within a short prompt."""
    return {"rope_parameters": {"rope_type": kind, "rope_theta": 500.0, **numbers}}


LLAMA3_ROPE: Final = rope(
    "llama3",
    factor=8.0,
    low_freq_factor=1.0,
    high_freq_factor=4.0,
    original_max_position_embeddings=64,
)
YARN: Final = rope("yarn", factor=4.0, original_max_position_embeddings=64)

# Name of the class at `transformers`, and its config beside SIZES.
MODELS: Final[dict[str, tuple[str, dict[str, Any]]]] = {
    "llama": ("Llama", rope("default")),
    "llama-tied": ("Llama", {"tie_word_embeddings": True}),
    "llama-bias": ("Llama", {"attention_bias": True}),
    "llama-wide-heads": ("Llama", {"head_dim": 32, "num_key_value_heads": 1}),
    "llama3-rope": ("Llama", LLAMA3_ROPE),
    "llama-linear-rope": ("Llama", rope("linear", factor=2.0)),
    "llama-yarn": ("Llama", YARN),
    "qwen2": ("Qwen2", {}),
    "qwen2-tied": ("Qwen2", {"tie_word_embeddings": True}),
    "qwen2-yarn": (
        "Qwen2",
        rope("yarn", factor=4.0, original_max_position_embeddings=64, beta_fast=8.0, beta_slow=2.0),
    ),
    "qwen3": ("Qwen3", {"head_dim": 32}),
    "qwen3-tied": ("Qwen3", {"head_dim": 16, "tie_word_embeddings": True}),
    "qwen3-bias": ("Qwen3", {"head_dim": 32, "attention_bias": True}),
    "qwen3-yarn": (
        "Qwen3",
        rope("yarn", factor=2.0, original_max_position_embeddings=128, attention_factor=1.5),
    ),
}


class _Answer(Protocol):
    logits: torch.Tensor


class _Shape(Protocol):
    tie_word_embeddings: bool
    max_position_embeddings: int


class HfModel(Protocol):
    """What of a `PreTrainedModel` is used here; the library takes too long to import for a type."""

    config: _Shape

    def __call__(self, *, input_ids: torch.Tensor, use_cache: bool) -> _Answer: ...
    def parameters(self) -> Iterator[torch.nn.Parameter]: ...
    def state_dict(self) -> Mapping[str, torch.Tensor]: ...
    def get_buffer(self, target: str) -> torch.Tensor: ...
    def save_pretrained(self, folder: Path, **how: object) -> None: ...
    def to(self, dtype: torch.dtype) -> "HfModel": ...


@cache
def library() -> ModuleType:
    """Imported late: it takes ten seconds, which quick tests must not wait for."""
    os.environ["HF_HUB_OFFLINE"] = "1"  # it reads this when it is imported
    return import_module("transformers")


def make(name: str, **config: object) -> HfModel:
    """A model of MODELS in float32, its weights large enough for logits of about 1."""
    family, more = MODELS[name]
    shape = getattr(library(), f"{family}Config")(**{**SIZES, **more, **config})
    model: HfModel = getattr(library(), f"{family}ForCausalLM")(shape).eval()
    generator = torch.Generator().manual_seed(len(name))
    with torch.no_grad():
        for parameter in model.parameters():
            drawn = torch.randn(parameter.shape, generator=generator)
            matrix = parameter.dim() > 1
            parameter.copy_(drawn * parameter.shape[-1] ** -0.5 if matrix else 1 + 0.3 * drawn)
    return model


def load(folder: Path) -> HfModel:
    """As `transformers` itself reads a folder, computed in float32."""
    models = library().AutoModelForCausalLM
    model: HfModel = models.from_pretrained(folder, dtype=torch.float32)
    return model


def save(model: HfModel, folder: Path, **how: object) -> Path:
    """As users get it, with a tokenizer beside."""
    model.save_pretrained(folder, **how)
    (folder / "tokenizer.json").write_bytes(msgspec.json.encode(DOCUMENT))
    return folder


@torch.no_grad()
def logits(model: HfModel, ids: Sequence[int]) -> torch.Tensor:
    """After each token, float32 [tokens, vocab]."""
    return model(input_ids=torch.tensor([list(ids)]), use_cache=False).logits[0]


def greedy(model: HfModel, ids: Sequence[int], new_tokens: int) -> list[int]:
    whole = list(ids)
    for _ in range(new_tokens):
        whole.append(int(logits(model, whole)[-1].argmax()))
    return whole[len(ids) :]


def weights(model: HfModel) -> dict[str, torch.Tensor]:
    """By name, a tied head left out as it is in files."""
    tied = model.config.tie_word_embeddings
    state = model.state_dict()
    return {name: tensor for name, tensor in state.items() if not (tied and name == HEAD)}
