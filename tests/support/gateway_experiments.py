"""Experiments of a small gateway, as an admin declares and reads them."""

import asyncio
from pathlib import Path
from typing import Any

from radixgate.analysis.experiments.records import (
    Record,
    read_lines,
)
from radixgate.gateway.settings.experiments_config import (
    ExperimentLogConfig,
    ExperimentRules,
)
from radixgate.gateway.settings.rules import GatewayRules
from small_gateway import SmallGateway
from until import PATIENCE_S

SHORT = {
    "name": "short",
    "kind": "switchback",
    "b": "random",
    "block_s": 0.5,
    "pairs": 1,
    "washout_s": 0.2,
    "hold_cap_s": 0.2,
    "seed": 3,
    "start": True,
}


LONG = {"block_s": 100.0, "hold_cap_s": 10.0, "washout_s": 0.0}


def rules(folder: Path, **more: Any) -> GatewayRules:  # noqa: ANN401
    log = ExperimentLogConfig(experiment_folder=str(folder))
    return GatewayRules(experiments=ExperimentRules(log), **more)


async def declared(gateway: SmallGateway, **of: object) -> dict[str, Any]:
    reply = await gateway.post("/experiments", {**SHORT, **of})
    assert reply.status == 200, reply.body
    row: dict[str, Any] = reply.json
    return row


async def state(gateway: SmallGateway, name: str) -> dict[str, Any]:
    row: dict[str, Any] = (await gateway.get(f"/experiments/{name}")).json
    return row


async def over(gateway: SmallGateway, name: str) -> dict[str, Any]:
    async with asyncio.timeout(PATIENCE_S):
        while (row := await state(gateway, name))["state"] != "over":  # noqa: ASYNC110
            await asyncio.sleep(0.02)
    return row


def files_in(folder: Path) -> list[Path]:
    return sorted(folder.iterdir())


def content_of(file: str) -> bytes:
    return Path(file).read_bytes()


def recorded(row: dict[str, Any]) -> list[Record]:
    return list(read_lines(Path(row["file"]).read_bytes().splitlines(keepends=True)))
