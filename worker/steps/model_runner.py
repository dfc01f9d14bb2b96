"""Lays the chunks of a step end to end and runs them through the model."""

from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np
import torch

from radixgate.worker.forward.attention import AttentionBackend
from radixgate.worker.forward.batch import ForwardBatch
from radixgate.worker.requests.sequence import TokenSequence
from radixgate.worker.schedule.chunks import Chunk
from radixgate.worker.steps.page_copies import CopyPages


class Model(Protocol):
    """Weights and what is done with them."""

    def forward(self, batch: ForwardBatch, attention: AttentionBackend) -> torch.Tensor:
        """Float32 logits [len(batch.logit_rows), vocab]; the batch's KV is stored on the way."""
        ...


class ModelRunner:
    """One model with its attention backend and KV pool. Not thread-safe: one step at a time."""

    def __init__(
        self,
        model: Model,
        attention: AttentionBackend,
        page_size: int,
        device: str = "cpu",
        copy_pages: CopyPages | None = None,
    ) -> None:
        """Without `copy_pages` further choices compute the prompt's last page again."""
        self._copy_pages = copy_pages
        self._model = model
        self._attention = attention
        self._page_size = page_size
        self._device = device

    @property
    def copies_pages(self) -> bool:
        return self._copy_pages is not None

    def run(self, chunks: Sequence[Chunk], batch: ForwardBatch) -> torch.Tensor:
        """Logits [rows, vocab]: of those chunks that sample, in their order, then of the scored
        positions of each chunk, but for position 0, which has none. `batch` was made of them."""
        copies = [chunk.copy for chunk in chunks if chunk.copy is not None]
        with torch.inference_mode():
            if copies and self._copy_pages is not None:
                self._copy_pages(copies)
            return self._model.forward(batch, self._attention)

    def batch(self, chunks: Sequence[Chunk]) -> tuple[ForwardBatch, Mapping[int, TokenSequence]]:
        """The batch, and the rows whose token is not drawn yet, with a 0 in its place.

        O(rows + pages). A page table is copied whole each step; it is 8 bytes a page.
        """
        size = self._page_size
        rows = sum(chunk.count for chunk in chunks)
        ids = np.empty(rows, dtype=np.int64)
        positions = np.empty(rows, dtype=np.int64)
        slots = np.empty(rows, dtype=np.int64)
        q_starts: list[int] = [0]
        logit_rows: list[int] = []
        scored_rows: list[int] = []
        tables: list[torch.Tensor] = []
        late: dict[int, TokenSequence] = {}
        for chunk in chunks:
            sequence, first = chunk.sequence, q_starts[-1]
            last = first + chunk.count
            table = np.array(sequence.pages, dtype=np.int64)
            if chunk.count == 1:
                place = chunk.start
                if place < len(sequence.ids):
                    ids[first] = sequence.ids[place]
                else:
                    ids[first], late[first] = 0, sequence
                positions[first] = place
                slots[first] = sequence.pages[place // size] * size + place % size
            else:
                places = np.arange(chunk.start, chunk.end)
                ids[first:last] = np.frombuffer(
                    sequence.ids[chunk.start : chunk.end], dtype=np.uint32
                )
                positions[first:last] = places
                slots[first:last] = table[places // size] * size + places % size
            tables.append(self._tensor(table))
            q_starts.append(last)
            if chunk.samples:
                logit_rows.append(last - 1)
            offset = first - chunk.start - 1
            scored_rows += [offset + position for position in chunk.scored if position]
        batch = ForwardBatch(
            token_ids=self._tensor(ids),
            positions=self._tensor(positions),
            slots=self._tensor(slots),
            q_starts=q_starts,
            context_lens=[chunk.end for chunk in chunks],
            page_tables=tables,
            page_size=size,
            logit_rows=self._tensor(np.array(logit_rows + scored_rows, dtype=np.int64)),
        )
        return batch, late

    def _tensor(self, values: "np.ndarray[tuple[int], np.dtype[np.int64]]") -> torch.Tensor:
        tensor = torch.from_numpy(values)
        return tensor if self._device == "cpu" else tensor.to(self._device)
