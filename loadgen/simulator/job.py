"""One request on its way through the simulation, and what is measured of it."""

from collections.abc import Callable
from dataclasses import dataclass

from radixgate.loadgen.simulator.block_pool import Holding
from radixgate.loadgen.simulator.trace import TracedRequest


@dataclass(slots=True, eq=False)
class Job:
    """Changed by the simulated worker that runs it."""

    request: TracedRequest
    number: int  # in order of arrival
    arrived_s: float
    on_first: Callable[["Job"], None]
    on_end: Callable[["Job"], None]
    gateway: int = 0
    lease: int = 0  # the gateway's number for it
    worker: int = -1  # -1: nobody has it yet
    owed: int = 0  # prompt tokens still to be computed
    cached_tokens: int = 0  # known once it runs
    computed_tokens: int = 0
    first_s: float = -1.0  # -1: not yet
    ended_s: float = -1.0
    holding: Holding | None = None  # None: it does not run

    @property
    def ttft_s(self) -> float:
        return self.first_s - self.arrived_s

    @property
    def e2e_s(self) -> float:
        return self.ended_s - self.arrived_s

    @property
    def tpot_s(self) -> float | None:
        """None: an answer of one token has no gap."""
        gaps = self.request.output_tokens - 1
        return (self.ended_s - self.first_s) / gaps if gaps > 0 else None
