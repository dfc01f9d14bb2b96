"""A small gateway with one worker of ours, which the test plays."""

import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import cast

from attached_worker import AttachedWorker
from radixgate.clock import Clock, SystemClock
from radixgate.fleet.fleet import MirrorKey, WorkerIdentity, WorkerState
from radixgate.gateway.asking.prompt_tokens import ServedModel
from radixgate.gateway.attempt.attempt import WorkerClient
from radixgate.gateway.gateway import Gateway
from radixgate.gateway.settings.rules import NO_RULES, GatewayRules
from radixgate.gateway.upstream.attach import AttachStream
from radixgate.gateway.workers.grpc_client import GrpcWorkerClient
from radixgate.text.prompt_encoder import PromptEncoder
from radixgate.worker.weights.toy import toy_tokenizer_bundle
from small_gateway import SmallGateway, small_gateway


def join_attached(
    gateway: Gateway, stream: AttachStream, worker_id: str, context_length: int = 4_096
) -> GrpcWorkerClient:
    """A worker of the model `toy` that is ready, behind this stream."""
    model = ServedModel("toy", "w", "t", 512, context_length, PromptEncoder(toy_tokenizer_bundle()))
    gateway.headquarters.path.prompts.learn(model)
    client = GrpcWorkerClient(
        stream,
        served=lambda: model,
        wall_clock=SystemClock().now,
        rng=random.Random(0),
        new_rid=gateway.headquarters.path.names.new_rid,
        on_close=lambda: None,
    )
    cast(dict[str, WorkerClient], gateway.workers.clients)[worker_id] = client
    gateway.fleet.admit(
        WorkerIdentity(
            id=worker_id,
            url=f"grpc://{worker_id}",
            kind="grpc",
            model="toy",
            mirror=MirrorKey("toy", "tokens", 16),
            capacity_tokens=1_000_000,
            weights_id="w",
            instance_id="",
            reports_kv=False,
        )
    )
    gateway.fleet.set_state(worker_id, WorkerState.READY)
    return client


@asynccontextmanager
async def attached_gateway(
    worker_id: str = "w0",
    rules: GatewayRules = NO_RULES,
    clock: Clock | None = None,
    **knobs: object,
) -> AsyncIterator[tuple[SmallGateway, AttachedWorker]]:
    """The model is `toy`; the worker is ready. `clock` and `knobs` as of `small_gateway`."""
    async with (
        small_gateway((), None, rules, clock, **knobs) as small,
        AttachedWorker() as worker,
    ):
        client = join_attached(small.gateway, worker.stream, worker_id)
        yield small, worker
        client.close()
