"""The wire as a stranger knows it: protos built by hand from the contract's field numbers.

Nothing of `mindie_ha.wire` is used, so that a wrong number there cannot hide.
Source: rank table contract §4.2 and §5.1.
"""

from __future__ import annotations

from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

_STRING = descriptor_pb2.FieldDescriptorProto.TYPE_STRING
_INT32 = descriptor_pb2.FieldDescriptorProto.TYPE_INT32

_MESSAGES = {
    "Status": {"code": (1, _INT32), "info": (2, _STRING)},
    "ClientInfo": {"jobId": (1, _STRING), "role": (2, _STRING)},
    "RankTableStream": {"jobId": (1, _STRING), "rankTable": (2, _STRING)},
}

CONFIG_REGISTER = "/config.Config/Register"
CONFIG_SUBSCRIBE = "/config.Config/SubscribeRankTable"
FAULT_REGISTER = "/fault.Fault/Register"
FAULT_SUBSCRIBE = "/fault.Fault/SubscribeFaultMsgSignal"
FAULT_QUERY = "/fault.Fault/GetFaultMsgSignal"


def _build() -> dict[str, Any]:
    file = descriptor_pb2.FileDescriptorProto(name="by_hand.proto", package="config", syntax="proto3")
    for name, fields in _MESSAGES.items():
        message = file.message_type.add(name=name)
        for field, (number, kind) in fields.items():
            message.field.add(
                name=field,
                number=number,
                type=kind,
                label=descriptor_pb2.FieldDescriptorProto.LABEL_OPTIONAL,
            )
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    return {
        name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"config.{name}"))
        for name in _MESSAGES
    }


_CLASSES = _build()
Status, ClientInfo, RankTableStream = (_CLASSES[name] for name in _MESSAGES)


class Client:
    """MS Controller's side of the services, over any channel."""

    def __init__(self, channel: Any, *, job_id: str = "chat", role: str = "mindie-ms-controller") -> None:
        self._channel = channel
        self._request = ClientInfo(jobId=job_id, role=role)

    async def register(self, method: str = CONFIG_REGISTER) -> Any:
        """The Status of one Register."""
        call = self._channel.unary_unary(
            method, request_serializer=_serialize, response_deserializer=Status.FromString
        )
        return await call(self._request, timeout=3)

    def subscribe(self, method: str = CONFIG_SUBSCRIBE) -> Any:
        """The open stream."""
        call = self._channel.unary_stream(
            method, request_serializer=_serialize, response_deserializer=RankTableStream.FromString
        )
        return call(self._request, timeout=10)


def _serialize(message: Any) -> bytes:
    data: bytes = message.SerializeToString()
    return data
