"""Steps on their way: laid out, computed, sampled, one while the next is planned."""
