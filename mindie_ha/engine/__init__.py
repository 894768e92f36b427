"""Reconcile loop, executor, publisher and the record of every decision."""
