"""The line a server prints once it serves, and how whoever started it reads that line."""

WORKER_READY = r"^radixgate worker ready http=(?P<http>\S+) grpc=(?P<grpc>\S+) model=(?P<model>\S+)"
GATEWAY_READY = r"^radixgate gateway ready on (?P<url>https?://\S+)"


def host_port(host: str, port: int) -> str:
    """As it stands in a URL, where an IPv6 address is in brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def worker_ready(http: str, grpc: str, model: str) -> str:
    """What a worker prints; `http` and `grpc` are `host:port` with the ports really taken."""
    return f"radixgate worker ready http={http} grpc={grpc} model={model}"


def gateway_ready(url: str) -> str:
    """What a gateway prints; more may follow on the line."""
    return f"radixgate gateway ready on {url}"
