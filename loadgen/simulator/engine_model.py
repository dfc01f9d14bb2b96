"""How long a step of an engine takes, as a function of what is in it."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from radixgate.errors import ConfigError


@dataclass(frozen=True, slots=True)
class EngineModel:
    """A linear cost model: what attention costs in long prefills is not in it."""

    step_s: float  # of every step
    prefill_token_s: float
    decode_row_s: float  # a sequence that decodes
    context_token_s: float  # a token in the context of a sequence that decodes
    chunk_tokens: int  # prompt tokens a step computes at most
    # Of a step, for each other worker that computes as it begins: they share a machine's cores.
    neighbour_share: float = 0.0

    def step_time(self, prefill_tokens: int, decode_rows: int, context_tokens: int) -> float:
        """Seconds of one step."""
        return (
            self.step_s
            + self.prefill_token_s * prefill_tokens
            + self.decode_row_s * decode_rows
            + self.context_token_s * context_tokens
        )


ENGINES: Mapping[str, EngineModel] = MappingProxyType(
    {
        # A 70B model at 20,000 prompt tokens a second.
        "study-70b": EngineModel(
            step_s=0.010,
            prefill_token_s=50e-6,
            decode_row_s=50e-6,
            context_token_s=15e-9,
            chunk_tokens=4_096,
        ),
        # Our worker with its embedded model on a core or two.
        "cpu": EngineModel(
            step_s=0.050,
            prefill_token_s=1 / 450,
            decode_row_s=0.004,
            context_token_s=0.0,
            chunk_tokens=512,
        ),
    }
)


def engine_named(name: str) -> EngineModel:
    """Raises ConfigError with the names there are."""
    if name not in ENGINES:
        raise ConfigError(f"no engine is called {name!r}; there are {', '.join(ENGINES)}")
    return ENGINES[name]
