"""Whether a worker is this gateway itself, or asks it: then a request would go round for ever."""


def leads_back(server_info: object, gateway_id: str) -> bool:
    """`server_info`: what a server says of itself. A gateway tells its own id in it, and what its
    workers say, and so on. O(what it says)."""
    left = [server_info]
    while left:
        info = left.pop()
        if not isinstance(info, dict):
            continue
        gateway, workers = info.get("gateway"), info.get("workers")
        if isinstance(gateway, dict) and gateway.get("id") == gateway_id:
            return True
        if isinstance(workers, dict):
            left += workers.values()
    return False
