"""Deterministic simulation: one seed is one history, judged at every step."""
