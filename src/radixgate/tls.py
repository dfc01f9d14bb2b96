"""What both sides of TLS go by: certificates read from PEM files, and nothing below TLS 1.2."""

import ssl
from collections.abc import Sequence
from pathlib import Path

from radixgate.errors import ConfigError

HTTP1, HTTP2 = "http/1.1", "h2"


def server_context(cert: str, key: str, client_ca: str | None) -> ssl.SSLContext:
    """For who listens. `client_ca`: only clients with a certificate of its are let in; None: any.

    Raises ConfigError naming the file.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols([HTTP1])
    _load_chain(context, cert, key)
    if client_ca is not None:
        _load_authority(context, client_ca)
        context.verify_mode = ssl.CERT_REQUIRED
    return context


def client_context(
    authorities: Sequence[str], cert: str | None, key: str | None, protocol: str = HTTP1
) -> ssl.SSLContext:
    """For who connects; the other side's name is checked. No `authorities`: the system's.

    `cert` and `key`: who we are; None: we do not say. `protocol`: what is spoken there. Raises
    ConfigError naming the file.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols([protocol])
    if not authorities:
        context.load_default_certs()
    for path in authorities:
        _load_authority(context, path)
    if cert is not None and key is not None:
        _load_chain(context, cert, key)
    return context


def pem(path: str) -> bytes:
    """The file as it is. Raises ConfigError."""
    try:
        return Path(path).read_bytes()
    except OSError as exc:
        raise ConfigError(f"{path}: {exc.strerror}") from exc


def _load_chain(context: ssl.SSLContext, cert: str, key: str) -> None:
    for path in (cert, key):
        pem(path)
    try:
        # A key with a password is refused rather than asked about on a terminal nobody sees.
        context.load_cert_chain(cert, key, password=_no_password)
    except (ssl.SSLError, OSError, ValueError) as exc:
        raise ConfigError(f"{cert} and {key} are no certificate with its key: {exc}") from exc


def _load_authority(context: ssl.SSLContext, path: str) -> None:
    pem(path)
    try:
        context.load_verify_locations(path)
    except (ssl.SSLError, OSError) as exc:
        raise ConfigError(f"{path} holds no certificate of an authority: {exc}") from exc


def _no_password() -> str:
    raise ValueError("the key has a password; give one without")
