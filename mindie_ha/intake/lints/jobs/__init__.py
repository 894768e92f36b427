"""What is wrong with the manifest of a job, and with what belongs to it. Pure.

A rule is one small function and one row: the rows stand in `RULES` below the functions, by concern, and
`table.py` joins them. To add a rule: write the function (description -> hits), its row, and a broken variant
in `tests/intake/job_variants.py`; `docs/lint.md` is made from the rows.
"""
