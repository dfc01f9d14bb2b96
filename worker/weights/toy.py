"""A tiny random Llama over bytes, for tests and demos: milliseconds a token, no files.

What it writes means nothing, but it is the same everywhere and depends on the whole context: so
a key, a value or a position out of place shows in the ids.
"""

import msgspec
import torch

from radixgate.text.bundle import TokenizerBundle
from radixgate.text.byte_level import BYTE_TO_CHARACTER
from radixgate.worker.weights.checkpoint import EMBEDDING, HEAD, tensor_shapes
from radixgate.worker.weights.model_config import ModelConfig

# Ids 0 to 255 are the bytes.
END_OF_TEXT_ID = 256
IM_START_ID = 257
IM_END_ID = 258
SPECIAL_TOKENS = {
    "<|endoftext|>": END_OF_TEXT_ID,
    "<|im_start|>": IM_START_ID,
    "<|im_end|>": IM_END_ID,
}

CHAT_TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)

_SEED = 20
# Standard deviations of what comes out, for inputs of 1. Attention that picks few tokens out of
# many, and that outweighs the current token, carries the whole context into the next one.
_QUERY_KEY_GAIN = 2.5
_ATTENTION_GAIN = 4.0
_MLP_GAIN = 4.0
# The best two of some hundred normal logits are about a third of this apart, and nearer than
# 0.01 once in a thousand tokens; the order of float32 sums moves a logit by some 0.0001.
_LOGIT_GAIN = 20.0


def toy_config() -> ModelConfig:
    """The toy's shape: 108,000 parameters, 512 bytes of float32 KV a token."""
    return ModelConfig(
        architecture="llama",
        vocab_size=264,  # 259 rounded up, as real models do
        hidden_size=64,
        layers=2,
        heads=4,
        kv_heads=2,
        head_dim=16,
        intermediate_size=128,
        rope_base=10_000.0,
        rms_eps=1e-5,
        context_length=8192,
        tied_embeddings=False,
    )


def toy_tensors(config: ModelConfig, seed: int = _SEED) -> dict[str, torch.Tensor]:
    """Random float32 weights by Hugging Face name, the same for the same seed. About 5 ms."""
    generator = torch.Generator().manual_seed(seed)
    tensors = {
        name: torch.randn(shape, generator=generator) * _gain(name) * shape[-1] ** -0.5
        if len(shape) > 1
        else torch.ones(shape)
        for name, shape in tensor_shapes(config).items()
    }
    tensors[EMBEDDING] *= config.hidden_size**0.5
    tensors[HEAD] *= _likelihoods(config.vocab_size).unsqueeze(1)
    return tensors


def toy_tokenizer_bundle() -> bytes:
    """A byte-level tokenizer without merges, and a ChatML template; byte b is id b."""
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True}
    document = {
        "version": "1.0",
        "added_tokens": [_special(text, index) for text, index in SPECIAL_TOKENS.items()],
        "pre_tokenizer": byte_level | {"use_regex": False},
        "decoder": byte_level | {"use_regex": False},
        "model": {
            "type": "BPE",
            "vocab": {text: byte for byte, text in BYTE_TO_CHARACTER.items()} | SPECIAL_TOKENS,
            "merges": [],
        },
    }
    return TokenizerBundle(
        tokenizer=msgspec.Raw(msgspec.json.encode(document)),
        chat_template=CHAT_TEMPLATE,
        eos_token="<|im_end|>",
        eos_token_ids=[END_OF_TEXT_ID, IM_END_ID],
    ).pack()


def _gain(name: str) -> float:
    if "q_proj" in name or "k_proj" in name:
        return _QUERY_KEY_GAIN
    if "o_proj" in name:
        return _ATTENTION_GAIN
    if "down_proj" in name:
        return _MLP_GAIN
    return _LOGIT_GAIN if name == HEAD else 1.0


def _likelihoods(vocab_size: int) -> torch.Tensor:
    """What each token's logits are scaled by: printable ASCII is likely, an end is not."""
    scales = torch.full((vocab_size,), 0.5)
    scales[ord(" ") : ord("~") + 1] = 1.0
    scales[list(SPECIAL_TOKENS.values())] = 0.25
    scales[len(BYTE_TO_CHARACTER) + len(SPECIAL_TOKENS) :] = 0.0
    return scales


def _special(text: str, index: int) -> dict[str, object]:
    return {
        "id": index,
        "content": text,
        "single_word": False,
        "lstrip": False,
        "rstrip": False,
        "normalized": False,
        "special": True,
    }
