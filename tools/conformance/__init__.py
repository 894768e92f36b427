"""One list of requests, played against the embedded API server and a real one; the answers have to be alike.

`tests/data/conformance/*.yaml` hold the requests, `recorded.json` beside them what a real one answered:
status, shape of the body, order of events. `python -m tools.conformance` records it anew.
"""
