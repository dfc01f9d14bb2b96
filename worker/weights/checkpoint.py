"""Which tensors the weights of a model consist of, by their Hugging Face names."""

from collections.abc import Mapping

from radixgate.errors import ModelError
from radixgate.worker.weights.model_config import ModelConfig

EMBEDDING = "model.embed_tokens.weight"
FINAL_NORM = "model.norm.weight"
HEAD = "lm_head.weight"


def tensor_shapes(config: ModelConfig) -> dict[str, tuple[int, ...]]:
    """Name and shape of every tensor that this model must have, no more and no fewer."""
    shapes: dict[str, tuple[int, ...]] = {EMBEDDING: (config.vocab_size, config.hidden_size)}
    for layer in range(config.layers):
        for name, shape in _layer_shapes(config).items():
            shapes[f"model.layers.{layer}.{name}"] = shape
    shapes[FINAL_NORM] = (config.hidden_size,)
    if not config.tied_embeddings:
        shapes[HEAD] = (config.vocab_size, config.hidden_size)
    return shapes


def check_shapes(config: ModelConfig, found: Mapping[str, tuple[int, ...]], where: object) -> None:
    """Raises ModelError that names the first tensor missing, misshapen or not of this model."""
    wanted = tensor_shapes(config)
    for name, shape in wanted.items():
        if name not in found:
            raise ModelError(f"{where}: the tensor {name} {shape} is missing")
        if tuple(found[name]) != shape:
            raise ModelError(
                f"{where}: the tensor {name} has shape {tuple(found[name])}, "
                f"but the config asks for {shape}"
            )
    for name in found:
        if name not in wanted:
            raise ModelError(
                f"{where}: the tensor {name} is not part of {config.architecture} as configured"
            )


def _layer_shapes(config: ModelConfig) -> dict[str, tuple[int, ...]]:
    hidden, inner = config.hidden_size, config.intermediate_size
    shapes: dict[str, tuple[int, ...]] = {
        "input_layernorm.weight": (hidden,),
        "self_attn.q_proj.weight": (config.q_size, hidden),
        "self_attn.k_proj.weight": (config.kv_size, hidden),
        "self_attn.v_proj.weight": (config.kv_size, hidden),
        "self_attn.o_proj.weight": (hidden, config.q_size),
        "post_attention_layernorm.weight": (hidden,),
        "mlp.gate_proj.weight": (inner, hidden),
        "mlp.up_proj.weight": (inner, hidden),
        "mlp.down_proj.weight": (hidden, inner),
    }
    if config.attention_bias:
        shapes["self_attn.q_proj.bias"] = (config.q_size,)
        shapes["self_attn.k_proj.bias"] = (config.kv_size,)
        shapes["self_attn.v_proj.bias"] = (config.kv_size,)
    if config.attention_output_bias:
        shapes["self_attn.o_proj.bias"] = (hidden,)
    if config.qk_norm:
        shapes["self_attn.q_norm.weight"] = (config.head_dim,)
        shapes["self_attn.k_norm.weight"] = (config.head_dim,)
    return shapes
