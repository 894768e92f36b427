"""Scenario runner: embedded cluster and controller in one process, judged and told as a story."""
