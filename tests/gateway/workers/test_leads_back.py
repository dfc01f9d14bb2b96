"""A gateway is no worker of itself, whether it is named so or reached by way of another."""

import pytest

from radixgate.fleet.fleet import WorkerState
from radixgate.gateway.workers.leads_back import leads_back
from scripted_worker import ScriptedWorker
from small_gateway import SmallGateway, small_gateway
from until import until


@pytest.mark.parametrize(
    ("info", "leads"),
    [
        pytest.param({"gateway": {"id": "me"}, "workers": {}}, True, id="itself"),
        pytest.param({"gateway": {"id": "other"}, "workers": {"a": {}}}, False, id="another"),
        pytest.param(
            {"gateway": {"id": "b"}, "workers": {"c": {"gateway": {"id": "me"}}}}, True, id="round"
        ),
        pytest.param({"gateway": "me", "workers": ["me"]}, False, id="words-of-others"),
        pytest.param({"max_total_num_tokens": 1}, False, id="no-gateway"),
        pytest.param([], False, id="nothing"),
    ],
)
def test_who_leads_back(info: object, leads: bool) -> None:
    assert leads_back(info, "me") is leads


async def refused(gateway: SmallGateway, port: int) -> None:
    """It stays out, and why is told."""
    where = f"127.0.0.1:{port}"
    assert (await gateway.post("/workers", {"url": f"http://{where}"})).status == 200
    member = gateway.gateway.workers.find(where)
    await until(lambda: bool(member.trouble))
    row = (await gateway.get(f"/workers/{where}")).json
    assert row["state"] == WorkerState.JOINING.value
    assert row["trouble"] == f"worker http://{where}: it is this gateway, or asks it"


async def test_by_its_own_address_it_does_not_join() -> None:
    async with ScriptedWorker() as worker, small_gateway([worker]) as gateway:
        await refused(gateway, gateway.port)
        for _ in range(2):  # of a rotation, which would come to it
            assert (await gateway.chat()).status == 200
        assert len(worker.requests) == 2


async def test_nor_by_way_of_another_gateway() -> None:
    async with ScriptedWorker() as worker, small_gateway([worker]) as one, small_gateway() as two:
        await two.post("/workers", {"url": f"http://127.0.0.1:{one.port}"})
        await two.ready(1)
        await refused(one, two.port)
        assert (await two.chat()).status == 200, "a gateway behind a gateway is none"
