"""The books: leases, requests and tokens in flight, load reports, candidates."""
