"""What all parts of the gateway share of a request: who asks, one try, what it brought."""
