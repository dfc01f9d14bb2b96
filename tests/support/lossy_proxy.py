"""Between a gateway and a worker's gRPC port: all goes on, but some of one stream gets lost."""

import random
from collections.abc import AsyncIterator
from types import TracebackType
from typing import Self

import grpc

WATCH_KV = "/WatchKv"


class LossyProxy(grpc.GenericRpcHandler):
    """`async with LossyProxy("127.0.0.1:9000", 0.01, rng) as proxy`; then ask `proxy.address`."""

    def __init__(self, target: str, lost_share: float, rng: random.Random) -> None:
        """Of the worker's KV updates so large a share never arrives."""
        self._target = target
        self._lost_share = lost_share
        self._rng = rng
        self.passed = self.lost = 0  # KV updates
        self.address = ""

    async def __aenter__(self) -> Self:
        self._channel = grpc.aio.insecure_channel(self._target)
        self._server = grpc.aio.server()
        self._server.add_generic_rpc_handlers((self,))
        self.address = f"127.0.0.1:{self._server.add_insecure_port('127.0.0.1:0')}"
        await self._server.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._server.stop(0)
        await self._channel.close()

    def service(
        self, handler_call_details: grpc.HandlerCallDetails
    ) -> "grpc.RpcMethodHandler[bytes, bytes]":
        method = handler_call_details.method
        loses = method.endswith(WATCH_KV)
        # On the wire every call is a stream of messages both ways.
        ask: grpc.aio.StreamStreamMultiCallable[bytes, bytes] = self._channel.stream_stream(method)

        async def passed_on(
            requests: AsyncIterator[bytes], context: "grpc.aio.ServicerContext[bytes, bytes]"
        ) -> AsyncIterator[bytes]:
            call = ask(requests)
            try:
                async for message in call:
                    if loses and self._loses():
                        continue
                    yield message
            except grpc.aio.AioRpcError as error:
                await context.abort(error.code(), error.details() or "")
            finally:
                call.cancel()

        return grpc.stream_stream_rpc_method_handler(passed_on)

    def _loses(self) -> bool:
        lost = self._rng.random() < self._lost_share
        self.lost += lost
        self.passed += not lost
        return lost
