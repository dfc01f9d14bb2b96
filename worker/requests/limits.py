"""How long a request may be, and how many tokens of KV there is room for."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from radixgate.errors import ConfigError
from radixgate.worker.settings.engine_config import EngineConfig
from radixgate.worker.weights.model_config import ModelConfig
from radixgate.worker.weights.rounding import KvDtype

# Where neither pool size nor share of memory is given: enough for many long prompts of a small
# model, and no surprise on a machine that does other things too.
_DEFAULT_SHARE = 0.5
_DEFAULT_MOST_BYTES = 2**30
_DEFAULT_MOST_TOKENS = 2**18


@dataclass(frozen=True, slots=True)
class WorkerLimits:
    """What a request must fit into."""

    vocab_size: int
    context_length: int  # tokens of prompt and output together
    pool_tokens: int  # in whole pages

    @property
    def longest(self) -> int:
        """Tokens of prompt and output at which an output ends, whatever its max_tokens."""
        return min(self.context_length, self.pool_tokens)


def limits_of(
    config: EngineConfig,
    model: ModelConfig,
    available_bytes: Callable[[], int] | None = None,
    kv: KvDtype = KvDtype.FP32,
) -> WorkerLimits:
    """Context and pool of a worker, in tokens; the pool in whole pages. Raises ConfigError."""
    context = config.context_length or model.context_length
    if context > model.context_length:
        raise ConfigError(
            f"context_length {context} is over the model's own {model.context_length}",
            param="context_length",
        )
    tokens = config.max_total_tokens
    if tokens is None:
        free = (available_bytes or memory_available)()
        tokens = _tokens_in(free, config.mem_fraction_static, kv_token_bytes(model, kv))
    tokens = tokens // config.page_size * config.page_size
    if tokens == 0:
        raise ConfigError(
            f"no page of {config.page_size} tokens fits into the KV pool; give --max-total-tokens",
            param="max_total_tokens",
        )
    return WorkerLimits(model.vocab_size, context, tokens)


def memory_available() -> int:
    """Bytes that can be taken without swapping, as the kernel estimates it."""
    for line in Path("/proc/meminfo").read_text().splitlines():
        name, _, value = line.partition(":")
        if name == "MemAvailable":
            return int(value.split()[0]) * 1024
    raise ConfigError(
        "the kernel does not say how much memory is available; give --max-total-tokens",
        param="max_total_tokens",
    )


def kv_token_bytes(model: ModelConfig, kv: KvDtype) -> int:
    """Of one token's keys and values in all layers."""
    return 2 * model.layers * model.kv_heads * kv.token_bytes(model.head_dim)


def _tokens_in(free_bytes: int, share: float | None, token_bytes: int) -> int:
    if share is not None:
        return int(free_bytes * share) // token_bytes
    most = min(int(free_bytes * _DEFAULT_SHARE), _DEFAULT_MOST_BYTES)
    return min(most // token_bytes, _DEFAULT_MOST_TOKENS)
