"""What people write to choose how faults are handled, as tables. Pure.

`catalogue.py` lists every parameter (Table 1: who needs it, Table 2: what it means), `injected.py` what the
Ascend Operator puts into the containers of a job (Table 3), `products.py` what is supported where. Lint
rules, `explain`, the generated page `docs/jobs.md` and tests read them; a new parameter is one row.

Source: training contract §3, §5; rescheduling contract §1, §4.6.
"""
