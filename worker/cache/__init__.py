"""The prefix cache: pages of KV, and the radix tree over token ids that finds them."""
