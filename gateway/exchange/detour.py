"""A way round the forwarder that requests take while an experiment runs."""

from typing import Protocol

from radixgate.gateway.attempt.attempt import Attempt, Client
from radixgate.gateway.exchange.admission import Admission
from radixgate.gateway.exchange.core import Core
from radixgate.gateway.heads.request_head import RequestHead


class Diversion(Protocol):
    """Begins requests in the forwarder's place."""

    def generate(
        self,
        core: Core,
        head: RequestHead,
        body: bytes,
        client: Client,
        admission: Admission,
    ) -> Attempt:
        """As `Forwarder.generate`; `core` is what the forwarder would go by."""
        ...


class Detour:
    """One a data path, whatever forwarders it has had. Taken only while something must look on."""

    __slots__ = ("by",)

    def __init__(self) -> None:
        self.by: Diversion | None = None
