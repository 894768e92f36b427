"""Small machinery without domain knowledge: clock, queue, tasks, metrics, logging."""
