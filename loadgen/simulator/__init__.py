"""A fleet in virtual time: real books, policies and mirrors over workers that are only timed."""
