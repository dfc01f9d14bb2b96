"""A fleet on IPv6 addresses: what a ready line says is what the others can connect to."""

import pytest

from live_fleet import empty_fleet

pytestmark = pytest.mark.slow


async def test_workers_and_gateway_listen_on_ipv6() -> None:
    async with empty_fleet() as fleet:
        worker = await fleet.add_worker("--host", "::1")
        assert worker.http.startswith("[::1]:")
        await fleet.start_gateway("--host", "::1", urls=[f"grpc://{worker.grpc}"])
        assert fleet.gateway_at.startswith("[::1]:")
        (row,) = await fleet.ready_workers(1)
        assert row["id"] == worker.grpc
        for at in (fleet.gateway_at, worker.http):
            status, _, answer = await fleet.post("/generate", {"text": "abc"}, at=at)
            assert (status, answer["meta_info"]["completion_tokens"]) == (200, 128)


async def test_what_listens_on_every_address_does_so_on_ipv4_too() -> None:
    async with empty_fleet() as fleet:
        worker = await fleet.add_worker("--host", "::")
        grpc, http = (at.rsplit(":", 1)[1] for at in (worker.grpc, worker.http))
        await fleet.start_gateway("--host", "::", urls=[f"grpc://127.0.0.1:{grpc}"])
        gateway = fleet.gateway_at.rsplit(":", 1)[1]
        for address in ("127.0.0.1", "[::1]"):
            for port in (gateway, http):
                assert (await fleet.get("/health", at=f"{address}:{port}"))[0] == 200
