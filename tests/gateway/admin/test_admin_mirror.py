"""What `/mirror` tells of the gateway's beliefs, and who may ask."""

import pytest

from radixgate.fleet.fleet import MirrorKey, WorkerIdentity
from radixgate.gateway.settings.access_config import AccessConfig
from radixgate.gateway.settings.rules import GatewayRules
from radixgate.proto.kv_events import Stored, Tier
from scripted_worker import ScriptedWorker
from small_gateway import SmallGateway, small_gateway

BLOCKS = [7, 2**64 - 1, 300]


async def reporting(gateway: SmallGateway, worker: ScriptedWorker) -> str:
    """A second worker in the books that has reported three blocks, under the first one's name."""
    name = f"127.0.0.1:{worker.port}"
    fleet = gateway.gateway.fleet
    fleet.remove(name)
    fleet.admit(
        WorkerIdentity(
            id=name,
            url=worker.url,
            kind="http",
            model="toy",
            mirror=MirrorKey("toy", "tokens", 16),
            capacity_tokens=1_000,
            weights_id="t",
            instance_id="i",
            reports_kv=True,
        )
    )
    mirror = fleet.mirror_of(name)
    mirror.reset(name, 9)
    mirror.apply(name, 9, [Stored(0, BLOCKS[:2]), Stored(0, BLOCKS[2:], Tier.HOST)])
    mirror.complete(name, 9)
    return name


async def test_numbers_of_a_mirror_and_its_workers() -> None:
    async with ScriptedWorker() as worker, small_gateway([worker]) as gateway:
        name = await reporting(gateway, worker)
        (mirror,) = (await gateway.get("/mirror")).json["mirrors"]
    assert (mirror["model"], mirror["unit"], mirror["block_size"]) == ("toy", "tokens", 16)
    assert (mirror["reported"], mirror["expected"], mirror["approximate"]) == (3, 0, 0)
    assert mirror["bytes"] == 270
    assert mirror["workers"][name] == {
        "stored": {"device": 2, "host": 1, "storage": 0},
        "expected": 0,
        "approximate": 0,
        "pending_prompts": 0,
        "epoch": 9,
        "complete": True,
        "late_updates": 0,
    }


async def test_a_dump_comes_in_pages() -> None:
    async with ScriptedWorker() as worker, small_gateway([worker]) as gateway:
        name = await reporting(gateway, worker)
        whole = (await gateway.get(f"/mirror/{name}")).json
        first = (await gateway.get(f"/mirror/{worker.url}?limit=1")).json
        rest = (await gateway.get(f"/mirror/{name}?after=0000000000000007")).json
    device = ["0000000000000007", "ffffffffffffffff"]
    host = ["000000000000012c"]
    assert (whole["blocks"]["device"], whole["blocks"]["host"]) == (device, host)
    assert (whole["worker"], whole["more"]) == (name, False)
    assert (first["blocks"]["device"], first["more"]) == (device[:1], True)
    assert rest["blocks"]["device"] == device[1:]


@pytest.mark.parametrize(
    ("path", "status"),
    [
        pytest.param("/mirror/127.0.0.1:1", 404, id="no-such-worker"),
        pytest.param("/mirror/{name}?limit=x", 400, id="limit"),
        pytest.param("/mirror/{name}?after=-1", 400, id="after"),
    ],
)
async def test_what_cannot_be_shown(path: str, status: int) -> None:
    async with ScriptedWorker() as worker, small_gateway([worker]) as gateway:
        answer = await gateway.get(path.format(name=f"127.0.0.1:{worker.port}"))
    assert answer.status == status


async def test_it_is_the_admins() -> None:
    rules = GatewayRules(AccessConfig(api_key="client", admin_api_key="admin"))
    async with small_gateway(rules=rules) as gateway:
        assert (await gateway.get("/mirror", "Authorization: Bearer client")).status == 403
        assert (await gateway.get("/mirror", "Authorization: Bearer admin")).json == {"mirrors": []}
