"""Verdicts, ladders, rungs, planner, budgets, brakes and isolation rules. Pure."""
