"""The Llama family's forward pass over rows of many sequences; attention is left to a backend."""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
import torch.nn.functional as functional

from radixgate.worker.attention import AttentionBackend
from radixgate.worker.batch import ForwardBatch
from radixgate.worker.checkpoint import EMBEDDING, FINAL_NORM, HEAD, check_shapes
from radixgate.worker.linear import Linear
from radixgate.worker.model_config import ModelConfig
from radixgate.worker.rope import Rope, Rotation, rotate


@dataclass(frozen=True, slots=True)
class _Layer:
    """One layer's weights; what is applied to the same input is one matrix."""

    attention_norm: torch.Tensor
    qkv: Linear
    qk_norm: torch.Tensor | None  # [heads + kv_heads, head_dim]; None: no norm on q and k
    output: Linear
    mlp_norm: torch.Tensor
    gate_up: Linear
    down: Linear


class Llama:
    """One model's weights, ready to run: Llama, Qwen2 and Qwen3 by the config's switches.

    Takes memory for the weights in float32 (a tied embedding twice: as a table and as the packed
    output head). Raises ModelError if the tensors are not those that the config asks for.
    """

    def __init__(self, config: ModelConfig, tensors: Mapping[str, torch.Tensor]) -> None:
        shapes = {name: tuple(tensor.shape) for name, tensor in tensors.items()}
        check_shapes(config, shapes, "weights")
        self.config = config
        self._embedding = _float(tensors, EMBEDDING)
        self._rope = Rope(config, self._embedding.device)
        self._layers = [_layer(config, tensors, index) for index in range(config.layers)]
        self._final_norm = _float(tensors, FINAL_NORM)
        self._head = Linear(tensors[EMBEDDING if config.tied_embeddings else HEAD])

    @torch.inference_mode()
    def forward(self, batch: ForwardBatch, attention: AttentionBackend) -> torch.Tensor:
        """Logits of `batch.logit_rows`, float32 [wanted, vocab]; writes the batch's KV.

        The result is an inference tensor: change it in place only under torch.inference_mode.
        """
        attention.plan(batch)
        rotation = self._rope.at(batch.positions)
        hidden = functional.embedding(batch.token_ids, self._embedding)
        last = len(self._layers) - 1
        for index, layer in enumerate(self._layers):
            q, k, v = self._qkv(layer, hidden, rotation)
            mixed = attention.run(index, q, k, v).flatten(1)
            if index == last:
                # After the last attention only the rows whose logits are wanted matter.
                hidden, mixed = hidden[batch.logit_rows], mixed[batch.logit_rows]
            hidden = hidden + layer.output(mixed)
            hidden = hidden + self._mlp(layer, hidden)
        return self._head(self._norm(hidden, self._final_norm))

    def _qkv(
        self, layer: _Layer, hidden: torch.Tensor, rotation: Rotation
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        heads, rotated = self.config.heads, self.config.heads + self.config.kv_heads
        qkv = layer.qkv(self._norm(hidden, layer.attention_norm))
        qkv = qkv.view(len(qkv), -1, self.config.head_dim)
        qk = qkv[:, :rotated]
        if layer.qk_norm is not None:
            qk = self._norm(qk, layer.qk_norm)
        qk = rotate(qk, rotation)
        return qk[:, :heads], qk[:, heads:], qkv[:, rotated:]

    def _mlp(self, layer: _Layer, hidden: torch.Tensor) -> torch.Tensor:
        gate, up = layer.gate_up(self._norm(hidden, layer.mlp_norm)).chunk(2, dim=-1)
        return layer.down(functional.silu(gate).mul_(up))

    def _norm(self, x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        # Half the memory traffic of functional.rms_norm, which is not one kernel on CPU.
        mean_square = x.square().mean(-1, keepdim=True)
        return (x * mean_square.add_(self.config.rms_eps).rsqrt_()).mul_(weight)


def _layer(config: ModelConfig, tensors: Mapping[str, torch.Tensor], index: int) -> _Layer:
    prefix = f"model.layers.{index}."
    attention, mlp = prefix + "self_attn.", prefix + "mlp."
    output_bias = (
        _float(tensors, attention + "o_proj.bias") if config.attention_output_bias else None
    )
    return _Layer(
        attention_norm=_float(tensors, prefix + "input_layernorm.weight"),
        qkv=_stacked(tensors, [attention + f"{x}_proj" for x in "qkv"], config.attention_bias),
        qk_norm=_qk_norm(config, tensors, attention) if config.qk_norm else None,
        output=Linear(tensors[attention + "o_proj.weight"], output_bias),
        mlp_norm=_float(tensors, prefix + "post_attention_layernorm.weight"),
        gate_up=_stacked(tensors, [mlp + "gate_proj", mlp + "up_proj"], bias=False),
        down=Linear(tensors[mlp + "down_proj.weight"]),
    )


def _stacked(tensors: Mapping[str, torch.Tensor], names: list[str], bias: bool) -> Linear:
    weight = torch.cat([tensors[name + ".weight"] for name in names])
    return Linear(weight, torch.cat([tensors[name + ".bias"] for name in names]) if bias else None)


def _qk_norm(
    config: ModelConfig, tensors: Mapping[str, torch.Tensor], attention: str
) -> torch.Tensor:
    q = _float(tensors, attention + "q_norm.weight").expand(config.heads, -1)
    k = _float(tensors, attention + "k_norm.weight").expand(config.kv_heads, -1)
    return torch.cat((q, k))


def _float(tensors: Mapping[str, torch.Tensor], name: str) -> torch.Tensor:
    return tensors[name].detach().to(torch.float32)
