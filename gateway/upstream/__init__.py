"""Connections to workers: raw HTTP/1.1 in pools, and gRPC's one stream over HTTP/2."""
