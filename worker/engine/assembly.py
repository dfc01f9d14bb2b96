"""The parts of an engine put together, all but weights and thread."""

import random

from radixgate.clock import Clock
from radixgate.text.tokenizer import Tokenizer
from radixgate.worker.cache.eviction import EVICTION_ORDERS
from radixgate.worker.cache.pages import PagePool
from radixgate.worker.cache.radix_cache import RadixCache
from radixgate.worker.engine.core import EngineCore
from radixgate.worker.requests.intake import Intake, ProcessorFactory
from radixgate.worker.requests.limits import WorkerLimits
from radixgate.worker.requests.logits import standard_processors
from radixgate.worker.schedule.kv_changes import KvChanges
from radixgate.worker.schedule.kv_memory import KvMemory
from radixgate.worker.schedule.prefill_pace import PrefillPace
from radixgate.worker.schedule.prompt_budget import PromptBudget
from radixgate.worker.schedule.reserve import DecodeReserve
from radixgate.worker.schedule.scheduler import Scheduler
from radixgate.worker.schedule.waiting import WaitingQueue
from radixgate.worker.schedule.waiting_orders import PREFIX_ORDERS, by_arrival, fixed_ranks
from radixgate.worker.settings.engine_config import EngineConfig
from radixgate.worker.steps.model_runner import ModelRunner
from radixgate.worker.steps.passes import ComputeLine, Here, Passes
from radixgate.worker.steps.pipeline import Pipeline


def build_core(
    config: EngineConfig,
    limits: WorkerLimits,
    runner: ModelRunner,
    clock: Clock,
    *,
    weights_id: str,
    tokenizer: Tokenizer | None,
    processors: ProcessorFactory = standard_processors,
    line: ComputeLine | None = None,
    even_context: int | None = None,
) -> EngineCore:
    """The engine without thread and weights: whatever `runner` runs, in `line`; None: in the
    thread that steps. `even_context` of the model; None: where a token stands does not matter."""
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
    memory = KvMemory(pool, cache, config.page_size, copies_pages=runner.copies_pages)
    rng = random.Random(config.random_seed)
    reserve = DecodeReserve(config.schedule_conservativeness)
    slo_ms = config.itl_slo
    pace = None if slo_ms is None else PrefillPace(slo_ms / 1000.0, even_context)
    budget = PromptBudget(config, pace)
    return EngineCore(
        config,
        intake=Intake(limits, tokenizer, processors, clock, rng),
        scheduler=Scheduler(config, memory, _waiting_queue(config, memory, rng), reserve, budget),
        memory=memory,
        changes=changes,
        pipeline=Pipeline(
            Passes(runner, clock, line or Here()), overlap=not config.disable_overlap_schedule
        ),
        clock=clock,
    )


def _waiting_queue(config: EngineConfig, memory: KvMemory, rng: random.Random) -> WaitingQueue:
    policy = config.schedule_policy
    prefix_order = PREFIX_ORDERS.get(policy)
    if prefix_order is None or config.disable_radix_cache:
        rank = fixed_ranks(rng).get(policy, by_arrival)
        return WaitingQueue(config.max_passed_over, rank=rank)
    return WaitingQueue(
        config.max_passed_over,
        prefix_order=prefix_order(memory),
        cache_version=lambda: memory.cache_version,
    )
