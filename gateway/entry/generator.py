"""Who answers what the front door lets in."""

from typing import Protocol

from radixgate.gateway.attempt.attempt import Attempt, Client
from radixgate.gateway.heads.request_head import RequestHead


class Generator(Protocol):
    """Answers generation requests: the core of the gateway."""

    def generate(self, head: RequestHead, body: bytes, client: Client) -> Attempt:
        """Begin to answer. Callbacks may come before this returns. Raises nothing."""
        ...
