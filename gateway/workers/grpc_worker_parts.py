"""What the workers of ours are made of besides gRPC, which is loaded with the first of them."""

import random
from collections.abc import Callable
from dataclasses import dataclass

from radixgate.clock import Clock
from radixgate.fleet.fleet import Fleet
from radixgate.gateway.asking.prompt_tokens import PromptTokenizer
from radixgate.gateway.observe.watch_counts import WatchCounts
from radixgate.gateway.settings.tls_config import GrpcCertificates
from radixgate.gateway.upstream.pool import UpstreamPool
from radixgate.gateway.workers.mirror_file import MirrorFile


@dataclass(frozen=True, slots=True)
class GrpcWorkerParts:
    """What every gRPC worker of one gateway is given."""

    gateway_id: str
    fleet: Fleet
    prompts: PromptTokenizer
    http_pool: Callable[[str, int], UpstreamPool]  # to a worker's own HTTP server
    check_timeout: Callable[[], float]  # seconds, as they are by then
    clock: Clock
    wall_clock: Callable[[], float]
    rng: random.Random  # of the seeds of requests that bring none
    new_rid: Callable[[], str]
    mirror_file: MirrorFile
    watch_counts: WatchCounts
    certificates: GrpcCertificates | None = None  # None: in the clear

    @property
    def timeout_s(self) -> float:
        """Of a probe and of an order, as it is now."""
        return self.check_timeout()
