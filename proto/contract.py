"""The version of the contract between gateway and worker (`worker.proto`)."""

# Raised when an older peer would misread a newer one; both sides refuse another number by name.
CONTRACT_VERSION = 1
