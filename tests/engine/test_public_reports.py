"""Reports of public faults on a whole cluster: remembered before they are answered, acted on, given back."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from mindie_ha.channels.fault_signals import FaultSubject
from mindie_ha.channels.ports import ReportCode
from mindie_ha.cluster.writer import Written
from mindie_ha.engine.public_reports import MAX_CONFLICTS, PublicReportDesk
from mindie_ha.engine.public_tables import load_public_codes
from mindie_ha.kit.clock import LoopClock
from mindie_ha.kit.logs import silent_log
from mindie_ha.kit.metrics import Metrics
from mindie_ha.model.errors import Conflict, LeaseLost, MindieHaError, SettingsError
from mindie_ha.model.ids import PUBLIC_SWEEP
from mindie_ha.model.public_faults import PublicFaultLedger
from mindie_ha.model.settings import Settings
from tests.engine.clusters import NAMESPACE, Cluster, cluster, quick
from tests.intake.public_examples import body, fault

pytestmark = pytest.mark.looptime
SERVICE = FaultSubject("service", "mindie/mindie-ms")


async def test_a_separated_card_is_answered_with_a_recovery_and_its_end_with_a_release() -> None:
    async with cluster(settings=quick()) as stage:
        pod = next(iter(stage.uids("mindie-server-p0")))
        node = stage.node_of(pod)
        report = _report(stage, pod)

        answer = await stage.app.public.report(report, entry="grpc")
        assert (answer.code, answer.accepted) == (ReportCode.OK, 1)
        assert [one["node"] for one in _remembered(stage)["faults"]] == [node]
        record = await stage.recovered("mindie-server-p0")
        assert record["intent"]["cause"] == "PublicFault"
        await stage.until(lambda: "mindie-ha.io/isolated" in stage.taints(node), "isolated")

        await stage.clock.sleep(10)
        await stage.app.public.report({**report, "faults": [_recovering(report)]}, entry="grpc")
        assert _remembered(stage)["faults"] == []
        await stage.until(lambda: not stage.taints(node), "released", deadline_s=400)


async def test_a_consumer_hears_of_it_and_of_its_end() -> None:
    async with cluster(settings=quick()) as stage:
        pod = next(iter(stage.uids("mindie-server-d0")))
        node = stage.node_of(pod)
        report = _report(stage, pod, faultCode="010001001")
        assert stage.app.signals.faults_of(SERVICE) == ()

        await stage.app.public.report(report, entry="http")
        (told,) = stage.app.signals.faults_of(SERVICE)
        job = stage.get("AscendJob", "mindie-server-d0")
        assert job is not None
        uid = job["metadata"]["uid"]
        assert (told.name, told.health) == (node, "SubHealthy")
        assert [(one.device_type, one.codes[0].code) for one in told.devices] == [("NPU", "010001001")]
        assert stage.app.signals.subject(uid, "") == FaultSubject("job", uid)
        assert stage.app.signals.faults_of(FaultSubject("job", uid)) == (told,)
        assert told in stage.app.signals.faults_of(FaultSubject("cluster"))

        await stage.clock.sleep(6)
        await stage.app.public.report({**report, "faults": [_recovering(report)]}, entry="http")
        assert stage.app.signals.faults_of(SERVICE) == ()


async def test_an_open_stream_is_woken_by_a_fault_and_by_its_end() -> None:
    async with cluster(settings=quick()) as stage:
        report = _report(stage, next(iter(stage.uids("mindie-server-d0"))), faultCode="010001001")
        with stage.app.outlets.streams.stream("mindie-ms", peer_ip="") as stream:
            waiting = asyncio.create_task(stream.next())
            await stage.clock.sleep(5)
            assert not waiting.done()

            await stage.app.public.report({**report, "faults": [_once(report)]}, entry="grpc")
            first = await asyncio.wait_for(waiting, 5)
            assert first is not None
            assert first.to_wire("").signalType == "fault"
            stream.sent()

            last = await asyncio.wait_for(stream.next(), 10)
            assert last is not None
            assert last.to_wire("").signalType == "normal"


async def test_a_config_map_is_read_once_per_content_also_across_restarts() -> None:
    async with cluster(settings=quick()) as stage:
        report = body(fault(faultCode="010001001"))
        await _put(stage, json.dumps(report))
        await stage.until(lambda: _remembered(stage)["faults"], "read")

        await stage.clock.sleep(10)
        gone = body(fault(assertion="recover", faultCode="010001001"))
        await stage.app.public.report(gone, entry="grpc")
        await stage.kill()
        await stage.start(quick())
        await stage.clock.sleep(20)
        assert _remembered(stage)["faults"] == []

        other = body(fault(faultId="fault-0002", faultCode="010001001"))
        await stage.api.patch("ConfigMap", "told", NAMESPACE, {"data": {"PublicFault": json.dumps(other)}})
        await stage.until(lambda: _remembered(stage)["faults"], "read again")


async def test_v71_a_deleted_config_map_leaves_its_fault_and_043_a_restart_too() -> None:
    async with cluster(settings=quick()) as stage:
        await _put(stage, json.dumps(body(fault(faultCode="010001001"))))
        await stage.until(lambda: _remembered(stage)["faults"], "read")

        await stage.api.delete("ConfigMap", "told", NAMESPACE)
        await stage.until(lambda: not _remembered(stage)["read"], "forgotten as read")
        await stage.kill()
        await stage.start(quick())

        (one,) = stage.app.core.store.public_ledger().faults
        assert one.fault_id == "fault-0001"


async def test_once_is_swept_when_its_time_is_over() -> None:
    async with cluster(settings=quick()) as stage:
        await stage.app.public.report(body(fault(assertion="once")), entry="grpc")
        assert _remembered(stage)["faults"]

        await stage.until(lambda: not _remembered(stage)["faults"], "swept", deadline_s=6)


async def test_config_maps_beyond_the_rate_are_read_later_and_not_lost() -> None:
    async with cluster(settings=quick()) as stage:
        for number in range(103):
            message = body(fault(faultId=f"fault-{number:04}", faultCode="010001001"))
            await _put(stage, json.dumps(message), name=f"told-{number}")

        await stage.until(lambda: len(_remembered(stage)["faults"]) == 103, "all read", deadline_s=30)


async def test_rubbish_in_a_config_map_hurts_nobody() -> None:
    async with cluster(settings=quick()) as stage:
        for number, text in enumerate(("", "{", "[]", '{"resource": 7}', json.dumps(body(version="2.0")))):
            await _put(stage, text, name=f"told-{number}")
        await _put(stage, json.dumps(body(fault(faultCode="010001001"))), name="good")

        await stage.until(lambda: _remembered(stage)["faults"], "the good one")
        assert "public fault ConfigMap refused" in stage.log()


async def test_without_writing_reports_are_kept_in_memory() -> None:
    async with cluster(settings=Settings(dry_run=True), start=False) as stage:
        await stage.start(Settings(dry_run=True))
        await stage.app.public.report(body(fault()), entry="grpc")

        assert stage.get("ConfigMap", "mindie-ha-public-faults", "mindx-dl") is None
        assert len(stage.app.core.store.public_ledger().faults) == 1


class Book:
    """A ledger that can refuse."""

    def __init__(self, *errors: MindieHaError) -> None:
        self.errors = list(errors)
        self.ledger = PublicFaultLedger()
        self.tries = 0

    def public_ledger(self) -> PublicFaultLedger:
        return self.ledger

    def public_report(self, key: object) -> None:
        return None

    def assume_public(self, ledger: PublicFaultLedger) -> None:
        self.ledger = ledger

    def serials(self) -> dict[str, str]:
        return {}

    async def save_public(self, ledger: PublicFaultLedger) -> Written:
        self.tries += 1
        if self.errors:
            raise self.errors.pop(0)
        self.ledger = ledger
        return Written.DONE


def _desk(book: Book) -> PublicReportDesk:
    return PublicReportDesk(
        memory=book,
        paper=book,
        codes=load_public_codes(""),
        clock=LoopClock(wall_origin_s=1_800_000_000),
        log=silent_log(),
        metrics=Metrics(),
    )


async def test_a_conflict_is_tried_again_on_what_is_then_true() -> None:
    book = Book(Conflict("somebody wrote first", status=409))

    assert (await _desk(book).report(body(), entry="grpc")).code is ReportCode.OK
    assert book.tries == 2


@pytest.mark.parametrize(
    "errors",
    [
        pytest.param([LeaseLost("not the leader")], id="not-leading"),
        pytest.param([Conflict("again", status=409)] * (MAX_CONFLICTS + 1), id="conflicts-without-end"),
    ],
)
async def test_what_could_not_be_written_is_not_answered_with_0(errors: list[MindieHaError]) -> None:
    book = Book(*errors)

    answer = await _desk(book).report(body(), entry="grpc")

    assert answer.code is ReportCode.NOT_KEPT
    assert book.ledger.faults == ()


async def test_041_the_answer_says_what_was_left_out_and_why() -> None:
    bad = fault(faultId="fault-0002", assertion="perhaps")
    answer = await _desk(Book()).report(body(fault(), bad, fault(faultId="fault-0003")), entry="grpc")

    assert (answer.code, answer.accepted) == (ReportCode.OK, 2)
    assert "faults[1].assertion" in answer.info
    assert answer.info.startswith("2 of 3")


async def test_v55_an_unknown_resource_is_told_410() -> None:
    answer = await _desk(Book()).report(body(resource="mine"), entry="grpc")

    assert answer.code is ReportCode.TOO_MANY
    assert "not configured" in answer.info


async def test_v70_the_101st_message_is_told_410_and_an_invalid_one_costs_a_token() -> None:
    desk = _desk(Book())
    codes = [(await desk.report(body(version="2.0"), entry="grpc")).code for _ in range(101)]

    assert codes == [ReportCode.INVALID] * 100 + [ReportCode.TOO_MANY]


async def test_a_repeated_report_is_not_written_again() -> None:
    book = Book()
    desk = _desk(book)
    for _ in range(3):
        await desk.report(body(), entry="grpc")

    assert book.tries == 1


async def test_a_sweep_that_cannot_be_written_is_tried_again() -> None:
    book = Book()
    desk = _desk(book)
    await desk.report(body(fault(assertion="once")), entry="grpc")
    assert (await desk.reconcile(PUBLIC_SWEEP)).wake_at_s == 1_800_000_005


def test_a_user_table_that_cannot_be_read_stops_the_start(tmp_path: Any) -> None:
    with pytest.raises(SettingsError, match="public_codes_file"):
        load_public_codes(str(tmp_path / "absent.json"))
    wrong = tmp_path / "wrong.json"
    wrong.write_text("{}")
    with pytest.raises(SettingsError, match=r"wrong\.json"):
        load_public_codes(str(wrong))


def _report(stage: Cluster, pod: str, **changes: Any) -> dict[str, Any]:
    annotations = stage.pods()[pod]["metadata"]["annotations"]
    device = int(annotations["huawei.com/AscendReal"].split(",")[0].rpartition("-")[2])
    influence = [{"nodeName": stage.node_of(pod), "deviceIds": [device]}]
    return body(fault(influence=influence, **changes))


def _recovering(report: dict[str, Any]) -> dict[str, Any]:
    (one,) = report["faults"]
    return {**one, "assertion": "recover"}


def _once(report: dict[str, Any]) -> dict[str, Any]:
    (one,) = report["faults"]
    return {**one, "assertion": "once"}


def _remembered(stage: Cluster) -> dict[str, Any]:
    found = stage.get("ConfigMap", "mindie-ha-public-faults", "mindx-dl")
    if found is None:
        return {"faults": [], "read": {}}
    ledger: dict[str, Any] = json.loads(found["data"]["ledger.json"])
    return ledger


async def _put(stage: Cluster, text: str, *, name: str = "told") -> None:
    metadata = {"name": name, "namespace": NAMESPACE, "labels": {"mc-consumer-publicfault": "true"}}
    await stage.apply(
        [{"kind": "ConfigMap", "apiVersion": "v1", "metadata": metadata, "data": {"PublicFault": text}}]
    )
