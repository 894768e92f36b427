"""What a server's management API says of its links: read strictly, and unknown where it is odd."""

from __future__ import annotations

import json

import pytest

from mindie_ha.channels.link_questions import ask_links, linked
from mindie_ha.channels.ms_endpoints import Answer


def status(*peers: object, role: str = "RoleReady") -> Answer:
    body = {"service": {"roleStatus": role, "currentRole": "decode"}, "linkStatus": {"peers": list(peers)}}
    return Answer(200, json.dumps(body).encode())


def peer(target: object, link: str = "ok") -> dict[str, object]:
    return {"target": target, "link": link}


@pytest.mark.parametrize(
    ("answer", "peers"),
    [
        pytest.param(status(), set(), id="none"),
        pytest.param(status(peer("10.0.0.1"), peer("10.0.0.2", "down")), {"10.0.0.1"}, id="ok-counts"),
        pytest.param(status(peer("10.0.0.1:1026")), {"10.0.0.1"}, id="port"),
        pytest.param(status(peer("fd00::1")), {"fd00::1"}, id="v6"),
        pytest.param(status(peer(7)), None, id="number"),
        pytest.param(status(peer("p0")), None, id="name"),
        pytest.param(status(role="RoleSwitching"), None, id="switching"),
        pytest.param(status("10.0.0.1"), None, id="no-object"),
        pytest.param(status({"target": "10.0.0.1"}), None, id="no-link"),
        pytest.param(
            Answer(200, b'{"service": {"roleStatus": "RoleReady"}, "linkStatus": {"pee'), None, id="cut"
        ),
        pytest.param(Answer(200, b"[" * 60_000), None, id="deep"),
        pytest.param(Answer(200, b"null"), None, id="null"),
        pytest.param(Answer(200, b'{"service": [], "linkStatus": 3}'), None, id="types"),
    ],
)
def test_links_are_read_strictly(answer: Answer, peers: set[str] | None) -> None:
    assert linked(answer) == peers


class Pod:
    """Endpoints of one pod."""

    def __init__(self, **answers: Answer) -> None:
        self.answers = answers
        self.asked: list[tuple[str, int, str]] = []

    async def get(self, ip: str, port: int, path: str) -> Answer:
        self.asked.append((ip, port, path))
        return self.answers.get(path.split("/")[1], Answer(404))

    async def close(self) -> None:
        return None


async def test_the_single_node_form_is_asked_where_the_other_is_not_there() -> None:
    pod = Pod(v1=status(peer("10.0.0.1")))
    told = await ask_links(pod, "10.1.0.1", port=1026)
    assert told.peers == {"10.0.0.1"}
    assert pod.asked == [("10.1.0.1", 1026, "/v2/status"), ("10.1.0.1", 1026, "/v1/status")]


async def test_an_error_is_no_word_about_links() -> None:
    told = await ask_links(Pod(v2=Answer(500)), "10.1.0.1", port=1026)
    assert (told.peers, told.malformed) == (None, True)
