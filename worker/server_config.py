"""Where the worker listens, and under what name its model is known."""

from dataclasses import dataclass

from radixgate.configs.declare import knob


@dataclass(frozen=True, slots=True)
class ServerConfig:
    """The worker's two servers: HTTP for clients and tools, gRPC for gateways."""

    host: str = knob("127.0.0.1", help="address both servers bind to")
    port: int = knob(30000, help="HTTP port; 0 picks a free one and prints it")
    grpc_port: int = knob(0, help="gRPC port; 0 picks a free one and prints it")
    served_model_name: str | None = knob(
        None, help="name clients ask for; if not given, the last part of --model-path"
    )
    cache_dir: str = knob(
        "~/.cache/radixgate",
        help="where converted models and compiled kernels are kept",
        env="RADIXGATE_CACHE_DIR",
    )
    max_payload_size: int = knob(64 * 1024 * 1024, help="largest request body", unit="bytes")
    shutdown_grace_period_secs: float = knob(
        30.0, help="how long requests may run on after SIGTERM", unit="seconds"
    )
    kv_ring_updates: int = knob(
        4096, help="cache updates kept for gateways that fall behind; beyond it, a snapshot"
    )
    enable_metrics: bool = knob(True, help="serve /metrics")
    enable_cache_report: bool = knob(
        True, help="OpenAI's usage says how many prompt tokens were cached"
    )
    log_level: str = knob("info", help="what is logged", choices=("debug", "info", "warning"))
