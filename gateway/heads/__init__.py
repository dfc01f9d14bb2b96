"""Heads of HTTP messages: read strictly, passed on with this hop's rules, and written."""
