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

from radixgate.worker.engine.compute import choose_compute
from radixgate.worker.forward.batch import ForwardBatch, KvPool
from radixgate.worker.settings.engine_config import (
    ATTENTION_BACKENDS,
    KV_CACHE_DTYPES,
    WEIGHTS,
    EngineConfig,
)
from radixgate.worker.weights.model_store import DEFAULT_CACHE_DIR, open_model


class Bench:
    """A model, a pool of randomly dealt pages, and random prompts."""

    def __init__(self, settings: EngineConfig, *, max_tokens: int, shared: int, seed: int) -> None:
        """`shared` tokens at the start are common to all sequences, as far as pages go."""
        compute = choose_compute(settings, DEFAULT_CACHE_DIR)
        stored = open_model(settings.model_path, DEFAULT_CACHE_DIR)
        page_size = settings.page_size
        self.about = f"{compute.backend}, {compute.arithmetic.weights} weights, "
        self.about += f"KV in {compute.arithmetic.kv}"
        self.config = stored.config
        self._page_size = page_size
        pages = max_tokens // page_size
        pool = KvPool.allocate(
            layers=self.config.layers,
            slots=pages * page_size,
            kv_heads=self.config.kv_heads,
            head_dim=self.config.head_dim,
            dtype=compute.arithmetic.kv.torch_dtype,
        )
        for stored_kv in (*pool.keys, *pool.values):
            # Memory that was never written is one page of zeros, which is read too fast.
            stored_kv.fill_(1)
        self._model, self._attention = compute.over(stored, pool)
        self._dealt = list(range(pages))
        random.Random(seed).shuffle(self._dealt)
        self._shared = self._dealt[: shared // page_size]
        torch.manual_seed(seed)

    def batch(self, sequences: int, cached: int, new: int) -> ForwardBatch:
        """`sequences` with `cached` tokens each, `new` more computed in this pass."""
        size, context = self._page_size, cached + new
        shared = self._shared[: cached // size]
        each = -(-context // size) - len(shared)
        own = self._dealt[len(self._shared) :]
        tables = [torch.tensor(shared + own[i * each : (i + 1) * each]) for i in range(sequences)]
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
    parser.add_argument("--backend", default="auto", choices=ATTENTION_BACKENDS)
    parser.add_argument("--kv", default="auto", choices=KV_CACHE_DTYPES)
    parser.add_argument("--weights", default="fp32", choices=WEIGHTS)
    parser.add_argument("--page-size", type=int, default=16)
    parser.add_argument("--context", type=int, default=600, help="tokens cached while decoding")
    parser.add_argument("--shared", type=int, default=0, help="of those, common to all sequences")
    parser.add_argument("--batches", type=int, nargs="+", default=[1, 8, 32])
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    tokens = max(2048 + 64, max(args.batches) * (args.context + args.page_size + 1))
    settings = EngineConfig(
        model_path=args.model,
        page_size=args.page_size,
        attention_backend=args.backend,
        kv_cache_dtype=args.kv,
        weights=args.weights,
    )
    bench = Bench(settings, max_tokens=tokens, shared=args.shared, seed=args.seed)
    print(
        f"{args.model}, {bench.about}, {args.threads} threads, pages of {args.page_size},"
        f" best of {args.repeats}"
    )
    for cached, new in ((0, 512), (1536, 512), (512, 64)):
        times = bench.measure(bench.batch(1, cached, new), args.repeats)
        times.show(f"prefill {new} after {cached} cached", new)
    for size in args.batches:
        times = bench.measure(bench.batch(size, args.context, 1), args.repeats)
        times.show(f"decode {size} at {args.context}", size)


if __name__ == "__main__":
    main()
