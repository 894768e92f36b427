"""Protocol definitions and the code generated from them.

The `.proto` files are ours, written from the field numbers of the wire contract; the reference's
own files are not used. `python -m tools.generate_wire` regenerates; a test proves that they are in sync.
Import as `from mindie_ha.wire import config_pb2, config_pb2_grpc`.
"""
