"""The parts of an engine put together, all but weights and thread."""

import random

from radixgate.clock import Clock
from radixgate.text.tokenizer import Tokenizer
from radixgate.worker.config import EngineConfig
from radixgate.worker.core import EngineCore
from radixgate.worker.eviction import EVICTION_ORDERS
from radixgate.worker.intake import Intake, ProcessorFactory
from radixgate.worker.kv_changes import KvChanges
from radixgate.worker.kv_memory import KvMemory
from radixgate.worker.limits import Limits
from radixgate.worker.logits import standard_processors
from radixgate.worker.model_runner import ModelRunner
from radixgate.worker.pages import PagePool
from radixgate.worker.radix_cache import RadixCache
from radixgate.worker.reserve import DecodeReserve
from radixgate.worker.scheduler import Scheduler
from radixgate.worker.waiting import WaitingQueue


def build_core(
    config: EngineConfig,
    limits: Limits,
    runner: ModelRunner,
    clock: Clock,
    *,
    weights_id: str,
    tokenizer: Tokenizer | None,
    processors: ProcessorFactory = standard_processors,
) -> EngineCore:
    """The engine without thread and weights: whatever `runner` runs."""
    changes = KvChanges(enabled=not config.disable_radix_cache)
    pool = PagePool(limits.pool_tokens // config.page_size)
    cache = RadixCache(
        pool,
        page_size=config.page_size,
        weights_id=weights_id,
        emit=changes.add,
        order=EVICTION_ORDERS[config.radix_eviction_policy],
        enabled=not config.disable_radix_cache,
    )
    memory = KvMemory(pool, cache, config.page_size)
    waiting = WaitingQueue(config.schedule_policy, memory.uncached_tokens, config.max_passed_over)
    reserve = DecodeReserve(config.schedule_conservativeness)
    return EngineCore(
        config,
        intake=Intake(limits, tokenizer, processors, clock, random.Random(config.random_seed)),
        scheduler=Scheduler(config, memory, waiting, reserve),
        memory=memory,
        changes=changes,
        runner=runner,
        clock=clock,
    )
