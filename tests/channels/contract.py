"""The wire as a stranger knows it: protos built by hand from the contract's field numbers.

Nothing of `mindie_ha.wire` is used, so that a wrong number there cannot hide.
Source: rank table contract §4.2 and §5.1.
"""

from __future__ import annotations

from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

_Field = descriptor_pb2.FieldDescriptorProto
_STRING, _INT32, _INT64 = _Field.TYPE_STRING, _Field.TYPE_INT32, _Field.TYPE_INT64
_MANY = True

_MESSAGES: dict[str, dict[str, Any]] = {
    "Status": {"code": (1, _INT32), "info": (2, _STRING)},
    "ClientInfo": {"jobId": (1, _STRING), "role": (2, _STRING)},
    "RankTableStream": {"jobId": (1, _STRING), "rankTable": (2, _STRING)},
    "SwitchFaultInfo": {
        "faultCode": (1, _STRING),
        "switchChipId": (2, _STRING),
        "switchPortId": (3, _STRING),
        "faultTime": (4, _STRING),
        "faultLevel": (5, _STRING),
    },
    "DeviceFaultInfo": {
        "deviceId": (1, _STRING),
        "deviceType": (2, _STRING),
        "faultCodes": (3, _STRING, _MANY),
        "faultLevel": (4, _STRING),
        "switchFaultInfos": (7, "SwitchFaultInfo", _MANY),
        "faultLevels": (8, _STRING, _MANY),
    },
    "NodeFaultInfo": {
        "nodeName": (1, _STRING),
        "nodeIP": (2, _STRING),
        "nodeSN": (3, _STRING),
        "faultLevel": (4, _STRING),
        "faultDevice": (5, "DeviceFaultInfo", _MANY),
    },
    "FaultMsgSignal": {
        "uuid": (1, _STRING),
        "jobId": (2, _STRING),
        "signalType": (3, _STRING),
        "nodeFaultInfo": (4, "NodeFaultInfo", _MANY),
    },
    "FaultQueryResult": {"code": (1, _INT32), "info": (2, _STRING), "faultSignal": (3, "FaultMsgSignal")},
    "LocationEntry": {"key": (1, _STRING), "value": (2, _STRING)},  # a map is a list of these
    "PubFaultInfo": {"nodeName": (1, _STRING), "nodeSN": (2, _STRING), "deviceIds": (3, _INT32, _MANY)},
    "PublicFault": {
        "faultId": (1, _STRING),
        "faultType": (2, _STRING),
        "faultCode": (3, _STRING),
        "faultTime": (4, _INT64),
        "assertion": (5, _STRING),
        "faultLocation": (6, "LocationEntry", _MANY),
        "influence": (7, "PubFaultInfo", _MANY),
        "description": (8, _STRING),
    },
    "PublicFaultRequest": {
        "id": (1, _STRING),
        "timestamp": (2, _INT64),
        "version": (3, _STRING),
        "resource": (4, _STRING),
        "faults": (5, "PublicFault", _MANY),
    },
}

CONFIG_REGISTER = "/config.Config/Register"
CONFIG_SUBSCRIBE = "/config.Config/SubscribeRankTable"
FAULT_REGISTER = "/fault.Fault/Register"
FAULT_SUBSCRIBE = "/fault.Fault/SubscribeFaultMsgSignal"
FAULT_QUERY = "/fault.Fault/GetFaultMsgSignal"
PUBLIC_SEND = "/PubFault/SendPublicFault"


def _build() -> dict[str, Any]:
    file = descriptor_pb2.FileDescriptorProto(name="by_hand.proto", package="config", syntax="proto3")
    for name, fields in _MESSAGES.items():
        message = file.message_type.add(name=name)
        for field, (number, kind, *many) in fields.items():
            made = message.field.add(name=field, number=number)
            made.label = _Field.LABEL_REPEATED if many else _Field.LABEL_OPTIONAL
            if isinstance(kind, str):
                made.type, made.type_name = _Field.TYPE_MESSAGE, f".config.{kind}"
            else:
                made.type = kind
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    return {
        name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"config.{name}"))
        for name in _MESSAGES
    }


_CLASSES = _build()
Status, ClientInfo, RankTableStream = (_CLASSES[name] for name in ("Status", "ClientInfo", "RankTableStream"))
FaultMsgSignal, FaultQueryResult = _CLASSES["FaultMsgSignal"], _CLASSES["FaultQueryResult"]
PublicFaultRequest = _CLASSES["PublicFaultRequest"]


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
            method,
            request_serializer=_serialize,
            response_deserializer=(
                FaultMsgSignal if method == FAULT_SUBSCRIBE else RankTableStream
            ).FromString,
        )
        return call(self._request, timeout=10)

    async def query(self) -> Any:
        """The FaultQueryResult of one query."""
        call = self._channel.unary_unary(
            FAULT_QUERY, request_serializer=_serialize, response_deserializer=FaultQueryResult.FromString
        )
        return await call(self._request, timeout=10)

    async def report(self, message: Any) -> Any:
        """The Status of one report of public faults."""
        call = self._channel.unary_unary(
            PUBLIC_SEND, request_serializer=_serialize, response_deserializer=Status.FromString
        )
        return await call(message, timeout=3)


def _serialize(message: Any) -> bytes:
    data: bytes = message.SerializeToString()
    return data
