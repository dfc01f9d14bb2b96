"""The shape of a Llama-family model: what must be known before any weight is read."""

from collections.abc import Mapping
from dataclasses import dataclass

from radixgate.errors import ModelError

# qwen2 is llama with biases on q, k and v; qwen3 is llama with a norm on each head's q and k.
SUPPORTED_ARCHITECTURES = ("llama", "qwen2", "qwen3")

_POSITIVE = (
    "vocab_size",
    "hidden_size",
    "layers",
    "heads",
    "kv_heads",
    "head_dim",
    "intermediate_size",
    "context_length",
    "rope_base",
    "rms_eps",
)


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """Sizes and switches of one model. Raises ModelError if they cannot belong together."""

    architecture: str  # one of SUPPORTED_ARCHITECTURES
    vocab_size: int
    hidden_size: int
    layers: int
    heads: int
    kv_heads: int  # divides heads; equal to heads where each has its own keys
    head_dim: int  # elements; even, as rotation pairs its two halves
    intermediate_size: int
    rope_base: float
    rms_eps: float
    context_length: int  # tokens, after rope_scaling
    tied_embeddings: bool  # True: the output head is the embedding, and there is no lm_head.weight
    # As in a Hugging Face config.json (`rope_type`, `factor`, ...); None: positions are not scaled.
    rope_scaling: Mapping[str, object] | None = None
    qk_norm: bool = False  # RMSNorm over each head of q and k, before rotation
    attention_bias: bool = False  # on q, k and v
    attention_output_bias: bool = False  # on o as well

    def __post_init__(self) -> None:
        if self.architecture not in SUPPORTED_ARCHITECTURES:
            known = ", ".join(SUPPORTED_ARCHITECTURES)
            raise ModelError(f"architecture {self.architecture!r} is not supported, only {known}")
        for name in _POSITIVE:
            value = getattr(self, name)
            if not value > 0:
                raise ModelError(f"model config: {name} is {value}, it must be above 0")
        if self.heads % self.kv_heads:
            raise ModelError(
                f"model config: kv_heads {self.kv_heads} does not divide heads {self.heads}"
            )
        if self.head_dim % 2:
            raise ModelError(f"model config: head_dim is {self.head_dim}, it must be even")

    @property
    def q_size(self) -> int:
        """Elements of one token's queries, all heads."""
        return self.heads * self.head_dim

    @property
    def kv_size(self) -> int:
        """Elements of one token's keys (and of its values), all KV heads of one layer."""
        return self.kv_heads * self.head_dim

    @property
    def even_context(self) -> int:
        """Tokens before it from which on a token takes more operations to attend them than for all
        products with weights, the output head aside."""
        qkv_and_output = self.hidden_size * (2 * self.q_size + 2 * self.kv_size)
        return (qkv_and_output + 3 * self.hidden_size * self.intermediate_size) // (2 * self.q_size)

    @property
    def kv_elements_per_token(self) -> int:
        """Elements of one token's keys and values in all layers together."""
        return 2 * self.layers * self.kv_size
