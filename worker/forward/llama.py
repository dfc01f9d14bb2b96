"""The Llama family's forward pass over rows of many sequences; attention is left to a backend."""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
import torch.nn.functional as functional

from radixgate.worker.forward.attention import AttentionBackend
from radixgate.worker.forward.batch import ForwardBatch
from radixgate.worker.forward.kernels import Kernels, Product, QkvRows
from radixgate.worker.forward.kernels_torch import TorchKernels
from radixgate.worker.forward.rope import Rope, Rotation
from radixgate.worker.weights.checkpoint import EMBEDDING, FINAL_NORM, HEAD, check_shapes
from radixgate.worker.weights.model_config import ModelConfig


@dataclass(frozen=True, slots=True)
class Layer:
    """One layer's weights; what is applied to the same input is one matrix."""

    attention_norm: torch.Tensor
    qkv: Product
    # Weight [heads + kv_heads, head_dim] and eps; None: no norm on q and k.
    qk_norm: tuple[torch.Tensor, float] | None
    output: Product
    mlp_norm: torch.Tensor
    gate_up: Product
    down: Product


class Llama:
    """One model's weights, ready to run: Llama, Qwen2 and Qwen3 by the config's switches.

    Takes memory for the weights as the kernels keep them, and for a tied embedding once more: as
    a table beside the output head. Raises ModelError if the tensors are not those that the config
    asks for.
    """

    def __init__(
        self,
        config: ModelConfig,
        tensors: Mapping[str, torch.Tensor],
        kernels: Kernels | None = None,
    ) -> None:
        """`kernels` over the same weights; None: torch's, in float32."""
        shapes = {name: tuple(tensor.shape) for name, tensor in tensors.items()}
        check_shapes(config, shapes, "weights")
        self.config = config
        self._embedding = _float(tensors, EMBEDDING)
        self._rope = Rope(config, self._embedding.device)
        self._kernels = kernels or TorchKernels(tensors)
        self.layers = [
            _layer(config, tensors, self._kernels, index) for index in range(config.layers)
        ]
        self._final_norm = _float(tensors, FINAL_NORM)
        head = EMBEDDING if config.tied_embeddings else HEAD
        self._head = self._kernels.linear([head.removesuffix(".weight")])

    @torch.inference_mode()
    def forward(self, batch: ForwardBatch, attention: AttentionBackend) -> torch.Tensor:
        """Logits of `batch.logit_rows`, float32 [wanted, vocab]; writes the batch's KV.

        The result is an inference tensor: change it in place only under torch.inference_mode.
        """
        attention.plan(batch)
        hidden, rotation = self.begin(batch)
        mixed = hidden
        for index, layer in enumerate(self.layers):
            if index:
                self._add_up(self.layers[index - 1], hidden, mixed)
            mixed = attention.run(index, *self._qkv(layer, hidden, rotation)).flatten(1)
        return self.finish(batch, hidden, mixed)

    def begin(self, batch: ForwardBatch) -> tuple[torch.Tensor, Rotation]:
        """The embedded rows [rows, size], and the angles of their positions."""
        hidden = functional.embedding(batch.token_ids, self._embedding)
        return hidden, self._rope.at(batch.positions)

    def finish(
        self, batch: ForwardBatch, hidden: torch.Tensor, mixed: torch.Tensor
    ) -> torch.Tensor:
        """Logits, from what the last layer's attention mixed and the state before it is added."""
        # From here on only the rows whose logits are wanted matter.
        hidden, mixed = hidden[batch.logit_rows], mixed[batch.logit_rows]
        self._add_up(self.layers[-1], hidden, mixed)
        return self._head(self._norm(hidden, self._final_norm))

    def _add_up(self, layer: Layer, hidden: torch.Tensor, mixed: torch.Tensor) -> None:
        layer.output.add_to(hidden, mixed)
        layer.down.add_to(hidden, layer.gate_up(self._norm(hidden, layer.mlp_norm)))

    def _qkv(self, layer: Layer, hidden: torch.Tensor, rotation: Rotation) -> QkvRows:
        qkv = layer.qkv(self._norm(hidden, layer.attention_norm))
        qkv = qkv.view(len(qkv), -1, self.config.head_dim)
        return self._kernels.rotated(qkv, self.config.heads, rotation, layer.qk_norm)

    def _norm(self, x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        return self._kernels.norm(x, weight, self.config.rms_eps)


def _layer(
    config: ModelConfig, tensors: Mapping[str, torch.Tensor], kernels: Kernels, index: int
) -> Layer:
    prefix = f"model.layers.{index}."
    attention, mlp = prefix + "self_attn.", prefix + "mlp."
    return Layer(
        attention_norm=_float(tensors, prefix + "input_layernorm.weight"),
        qkv=kernels.linear([attention + f"{x}_proj" for x in "qkv"]),
        qk_norm=(_qk_norm(config, tensors, attention), config.rms_eps) if config.qk_norm else None,
        output=kernels.linear([attention + "o_proj"]),
        mlp_norm=_float(tensors, prefix + "post_attention_layernorm.weight"),
        gate_up=kernels.gated(mlp + "gate_proj", mlp + "up_proj"),
        down=kernels.linear([mlp + "down_proj"]),
    )


def _qk_norm(
    config: ModelConfig, tensors: Mapping[str, torch.Tensor], attention: str
) -> torch.Tensor:
    q = _float(tensors, attention + "q_norm.weight").expand(config.heads, -1)
    k = _float(tensors, attention + "k_norm.weight").expand(config.kv_heads, -1)
    return torch.cat((q, k))


def _float(tensors: Mapping[str, torch.Tensor], name: str) -> torch.Tensor:
    return tensors[name].detach().to(torch.float32)
