"""What gateway and worker agree on beside the messages of `worker.proto`."""

# Raised when an older peer would misread a newer one; both sides refuse another number by name.
CONTRACT_VERSION = 1
# Tokens ahead of its client for an answer that goes out whole: it is kept until it is complete.
WHOLE_CREDIT = 2**31 - 1
# How often a worker whose blocks do not change says so to who watches them.
KV_HEARTBEAT_S = 1.0
