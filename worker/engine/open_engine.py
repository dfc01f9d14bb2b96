"""A model on disk becomes an engine ready to start."""

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import torch

from radixgate.clock import Clock
from radixgate.text.tokenizer import Tokenizer
from radixgate.worker.engine.assembly import build_core
from radixgate.worker.engine.compute import choose_compute
from radixgate.worker.engine.engine import Engine
from radixgate.worker.forward.batch import KvPool
from radixgate.worker.requests.intake import ProcessorFactory
from radixgate.worker.requests.limits import limits_of
from radixgate.worker.requests.logits import standard_processors
from radixgate.worker.settings.engine_config import EngineConfig
from radixgate.worker.steps.model_runner import ModelRunner
from radixgate.worker.steps.page_copies import pool_copier
from radixgate.worker.weights.model_store import DEFAULT_CACHE_DIR, StoredModel


def open_engine(
    config: EngineConfig,
    model: StoredModel,
    clock: Clock,
    *,
    processors: ProcessorFactory = standard_processors,
    cache_dir: Path = DEFAULT_CACHE_DIR,
) -> Engine:
    """An engine ready to start, its KV pool allocated. Raises ConfigError, ModelError.

    `cache_dir` keeps the native kernels, which are compiled on first use; that takes seconds.
    """
    compute = choose_compute(config, cache_dir)
    kv = compute.arithmetic.kv
    limits = limits_of(config, model.config, kv=kv)
    pool = KvPool.allocate(
        layers=model.config.layers,
        slots=limits.pool_tokens,
        kv_heads=model.config.kv_heads,
        head_dim=model.config.head_dim,
        dtype=kv.torch_dtype,
        device=config.device,
        advise=None if compute.native is None else compute.native.use_large_pages,
    )
    runner = ModelRunner(
        *compute.over(model, pool),
        config.page_size,
        config.device,
        pool_copier(pool, config.page_size),
    )
    threads = threads_of(config)
    line = None if config.disable_overlap_schedule else compute_thread(threads)
    core = build_core(
        config,
        limits,
        runner,
        clock,
        weights_id=model.weights_id,
        tokenizer=Tokenizer.from_bundle(model.tokenizer_bundle),
        processors=processors,
        line=line,
        even_context=model.config.even_context,
    )
    return Engine(core, clock, threads=threads, line=line)


def compute_thread(threads: int) -> ThreadPoolExecutor:
    """Where passes are computed, by so many threads, while the engine's own plans the next."""
    # How many threads a pass may use belongs to the thread that begins it.
    return ThreadPoolExecutor(1, "compute", torch.set_num_threads, (threads,))


def threads_of(config: EngineConfig) -> int:
    """One core stays free for the servers and for who asks, where there is more than one."""
    return config.threads or max(1, len(os.sched_getaffinity(0)) - 1)
