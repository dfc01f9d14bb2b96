"""The seam between the model and how attention over paged KV is computed."""

from typing import Protocol

import torch

from radixgate.worker.forward.batch import ForwardBatch


class AttentionBackend(Protocol):
    """Stores the new keys and values, and attends causally over each sequence's pages.

    A backend is made for one KvPool. `plan` is called once a forward pass, `run` once a layer.
    """

    def plan(self, batch: ForwardBatch) -> None:
        """Whatever can be worked out once for all layers of this pass."""
        ...

    def run(self, layer: int, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        """q [rows, heads, head_dim], k and v [rows, kv_heads, head_dim], rotated already.

        Writes k and v to the batch's slots, then returns the attention output in q's shape.
        """
        ...
