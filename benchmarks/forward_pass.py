"""How fast one model runs on this machine: prefill tokens a second, and decode steps by batch.

    python benchmarks/forward_pass.py --model smollm2 --threads 2

The best of some repeats, as other work on the machine can only add time. Where it is never quiet,
read the CPU time with `--threads 1`: waiting for a core does not count in it.
"""

import argparse
import random
import time
from dataclasses import dataclass

import torch

from radixgate.worker.attention_torch import TorchAttention
from radixgate.worker.batch import ForwardBatch, KvPool
from radixgate.worker.llama import Llama
from radixgate.worker.model_store import DEFAULT_CACHE_DIR, open_model


class Bench:
    """A model, a pool of randomly dealt pages, and random prompts."""

    def __init__(self, model_path: str, *, page_size: int, max_tokens: int, seed: int) -> None:
        stored = open_model(model_path, DEFAULT_CACHE_DIR)
        self.config = stored.config
        self._page_size = page_size
        pages = max_tokens // page_size
        pool = KvPool.allocate(
            layers=self.config.layers,
            slots=pages * page_size,
            kv_heads=self.config.kv_heads,
            head_dim=self.config.head_dim,
        )
        self._model = Llama(stored.config, stored.tensors)
        self._attention = TorchAttention(pool)
        self._dealt = list(range(pages))
        random.Random(seed).shuffle(self._dealt)
        torch.manual_seed(seed)

    def batch(self, sequences: int, cached: int, new: int) -> ForwardBatch:
        """`sequences` with `cached` tokens each, `new` more computed in this pass."""
        size, context = self._page_size, cached + new
        each = -(-context // size)
        tables = [torch.tensor(self._dealt[i * each : (i + 1) * each]) for i in range(sequences)]
        places = torch.arange(cached, context)
        return ForwardBatch(
            token_ids=torch.randint(self.config.vocab_size, (sequences * new,)),
            positions=places.repeat(sequences),
            slots=torch.cat([table[places // size] * size + places % size for table in tables]),
            q_starts=[i * new for i in range(sequences + 1)],
            context_lens=[context] * sequences,
            page_tables=tables,
            page_size=size,
            logit_rows=torch.arange(new - 1, sequences * new, new),
        )

    def measure(self, batch: ForwardBatch, repeats: int) -> "Times":
        """The best of `repeats` passes over this batch, after one to warm up."""
        self._model.forward(batch, self._attention)
        passes = [self._timed(batch) for _ in range(repeats)]
        return Times(min(one.wall_s for one in passes), min(one.cpu_s for one in passes))

    def _timed(self, batch: ForwardBatch) -> "Times":
        wall, cpu = time.perf_counter(), time.process_time()
        self._model.forward(batch, self._attention)
        return Times(time.perf_counter() - wall, time.process_time() - cpu)


@dataclass(frozen=True, slots=True)
class Times:
    """One forward pass: on the clock, and on all cores together."""

    wall_s: float
    cpu_s: float

    def show(self, what: str, tokens: int) -> None:
        wall, cpu = f"{self.wall_s * 1e3:7.1f} ms", f"{self.cpu_s * 1e3:7.1f} ms of CPU"
        print(f"{what:28} {wall} {tokens / self.wall_s:7.1f} tok/s {cpu}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="smollm2")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--page-size", type=int, default=16)
    parser.add_argument("--context", type=int, default=600, help="tokens cached while decoding")
    parser.add_argument("--batches", type=int, nargs="+", default=[1, 8, 32])
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    tokens = max(2048 + 64, max(args.batches) * (args.context + args.page_size + 1))
    bench = Bench(args.model, page_size=args.page_size, max_tokens=tokens, seed=args.seed)
    print(
        f"{args.model}, {args.threads} threads, pages of {args.page_size}, best of {args.repeats}"
    )
    for cached, new in ((0, 512), (1536, 512), (512, 64)):
        times = bench.measure(bench.batch(1, cached, new), args.repeats)
        times.show(f"prefill {new} after {cached} cached", new)
    for size in args.batches:
        times = bench.measure(bench.batch(size, args.context, 1), args.repeats)
        times.show(f"decode {size} at {args.context}", size)


if __name__ == "__main__":
    main()
