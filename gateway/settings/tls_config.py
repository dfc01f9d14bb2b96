"""Settings of TLS: what clients connect to, and how workers are connected to."""

import ssl
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from radixgate.configs.declare import knob
from radixgate.errors import ConfigError
from radixgate.tls import HTTP2, client_context, pem, server_context


@dataclass(frozen=True, slots=True)
class GrpcCertificates:
    """What a grpcs:// worker is known by and shown, PEM; None: gRPC's own authorities, nothing."""

    roots: bytes | None
    key: bytes | None
    chain: bytes | None
    # The same for connections that gRPC does not make, one context for all of them. Asked with the
    # file of gRPC's own authorities, or None; they are many, and not read before they are needed.
    http2: Callable[[str | None], ssl.SSLContext]


@dataclass(frozen=True, slots=True)
class TlsConfig:
    """Knobs of certificates, all PEM files. Those to workers are for https:// and grpcs://."""

    tls_cert_path: str | None = knob(
        None, help="certificate that clients are shown, with its chain; none: in the clear"
    )
    tls_key_path: str | None = knob(None, help="its key, without a password")
    tls_client_ca_path: str | None = knob(
        None, help="only clients with a certificate of this authority are let in"
    )
    ca_cert_paths: tuple[str, ...] = knob(
        (),
        help="authorities whose workers are believed; none: the system's for https://, those that"
        " gRPC brings along for grpcs://",
    )
    client_cert_path: str | None = knob(
        None, help="certificate that workers are shown; none: they are shown none"
    )
    client_key_path: str | None = knob(None, help="its key, without a password")

    def __post_init__(self) -> None:
        if (self.tls_cert_path is None) != (self.tls_key_path is None):
            raise ConfigError("tls_cert_path and tls_key_path: one needs the other")
        if (self.client_cert_path is None) != (self.client_key_path is None):
            raise ConfigError("client_cert_path and client_key_path: one needs the other")
        if self.tls_client_ca_path is not None and self.tls_cert_path is None:
            raise ConfigError(
                "tls_client_ca_path asks clients for certificates, which only TLS can:"
                " give tls_cert_path and tls_key_path too"
            )

    @property
    def scheme(self) -> str:
        """Of the address that clients know."""
        return "http" if self.tls_cert_path is None else "https"

    def for_clients(self) -> ssl.SSLContext | None:
        """None: they come in the clear. Raises ConfigError for files that cannot be used."""
        if self.tls_cert_path is None or self.tls_key_path is None:
            return None
        return server_context(self.tls_cert_path, self.tls_key_path, self.tls_client_ca_path)

    def for_workers(self) -> ssl.SSLContext:
        """Raises ConfigError for files that cannot be used."""
        return client_context(self.ca_cert_paths, self.client_cert_path, self.client_key_path)

    def for_grpc_workers(self) -> GrpcCertificates:
        """Raises ConfigError for files that cannot be read."""
        roots = b"\n".join(map(pem, self.ca_cert_paths)) or None
        key = None if self.client_key_path is None else pem(self.client_key_path)
        chain = None if self.client_cert_path is None else pem(self.client_cert_path)
        return GrpcCertificates(roots, key, chain, cache(self._for_http2_workers))

    def _for_http2_workers(self, grpc_authorities: str | None) -> ssl.SSLContext:
        authorities = self.ca_cert_paths or tuple(filter(None, (grpc_authorities,)))
        return client_context(authorities, self.client_cert_path, self.client_key_path, HTTP2)
