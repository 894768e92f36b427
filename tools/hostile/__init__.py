"""Clients that mean harm, and what they cost: see `__main__.py`."""
