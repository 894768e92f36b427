"""Frozen facts of the domain: what is known, what is decided, what is remembered. Pure."""
