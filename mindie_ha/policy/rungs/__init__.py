"""The ways to recover a workload, each a pure object. See `steps.py` for what a rung is."""
