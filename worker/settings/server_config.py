"""Where the worker listens, and under what name its model is known."""

import ssl
from dataclasses import dataclass

from radixgate.configs.declare import knob
from radixgate.configs.ranges import check_port
from radixgate.errors import ConfigError
from radixgate.tls import pem, server_context


@dataclass(frozen=True, slots=True)
class GrpcCertificates:
    """What the gRPC server shows and asks for, PEM. As bytes: every command reads this file, and
    gRPC is loaded for a worker only."""

    key: bytes
    chain: bytes
    client_roots: bytes | None  # None: anybody is let in


@dataclass(frozen=True, slots=True)
class ServerConfig:
    """The worker's two servers: HTTP for clients and tools, gRPC for gateways."""

    host: str = knob("127.0.0.1", help="address both servers bind to")
    port: int = knob(30000, help="HTTP port; 0 picks a free one and prints it")
    grpc_port: int = knob(0, help="gRPC port; 0 picks a free one and prints it")
    ssl_certfile: str | None = knob(
        None, help="certificate of both servers, PEM with its chain; none: in the clear"
    )
    ssl_keyfile: str | None = knob(None, help="its key, PEM without a password")
    ssl_ca_certs: str | None = knob(
        None, help="only clients and gateways with a certificate of this authority are let in"
    )
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

    def __post_init__(self) -> None:
        for name in ("port", "grpc_port"):
            check_port(name, getattr(self, name))
        for name in ("max_payload_size", "kv_ring_updates"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} is {getattr(self, name)}, it must be at least 1")
        if self.shutdown_grace_period_secs < 0:
            raise ConfigError(
                f"shutdown_grace_period_secs is {self.shutdown_grace_period_secs:g},"
                " it cannot be negative"
            )
        if self.served_model_name == "":
            raise ConfigError("served_model_name is empty: give a name, or leave it out")
        if (self.ssl_certfile is None) != (self.ssl_keyfile is None):
            raise ConfigError("ssl_certfile and ssl_keyfile: one needs the other")
        if self.ssl_ca_certs is not None and self.ssl_certfile is None:
            raise ConfigError("ssl_ca_certs needs ssl_certfile and ssl_keyfile: TLS is off")

    def for_http(self) -> ssl.SSLContext | None:
        """None: in the clear. Raises ConfigError for files that cannot be used."""
        if self.ssl_certfile is None or self.ssl_keyfile is None:
            return None
        return server_context(self.ssl_certfile, self.ssl_keyfile, self.ssl_ca_certs)

    def for_grpc(self) -> GrpcCertificates | None:
        """None: in the clear. Raises ConfigError for files that cannot be read."""
        if self.ssl_certfile is None or self.ssl_keyfile is None:
            return None
        roots = None if self.ssl_ca_certs is None else pem(self.ssl_ca_certs)
        return GrpcCertificates(pem(self.ssl_keyfile), pem(self.ssl_certfile), roots)
