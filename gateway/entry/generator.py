"""Who answers what the front door lets in."""

from typing import Protocol

from radixgate.gateway.attempt.attempt import Attempt, Downstream
from radixgate.gateway.heads.request_head import RequestHead


class Generator(Protocol):
    """Answers generation requests: the core of the gateway."""

    def generate(self, head: RequestHead, body: bytes, downstream: Downstream) -> Attempt:
        """Begin to answer. Callbacks may come before this returns. Raises nothing."""
        ...
