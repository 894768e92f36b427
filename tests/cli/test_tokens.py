"""The token that goes with a request to a controller: from a file, a kubeconfig, or the pod."""

from __future__ import annotations

from pathlib import Path

import pytest

from mindie_ha.cli.sources import fetch, run_async
from mindie_ha.cli.tokens import Server, headers
from mindie_ha.model.errors import InputError

KUBECONFIG = """
current-context: here
contexts: [{name: here, context: {cluster: c, user: ann}}]
users: [{name: bob, user: {token: of-bob}}, {name: ann, user: {%s}}]
"""


@pytest.mark.parametrize(
    ("text", "token"),
    [
        pytest.param("abc.def\n", "abc.def", id="a token"),
        pytest.param(KUBECONFIG % "token: of-ann", "of-ann", id="of the current user"),
        pytest.param(KUBECONFIG % "tokenFile: beside", "from-beside", id="a file beside the kubeconfig"),
    ],
)
def test_where_a_token_is_read(tmp_path: Path, text: str, token: str) -> None:
    (tmp_path / "file").write_text(text, encoding="utf-8")
    (tmp_path / "beside").write_text("from-beside\n", encoding="utf-8")
    found = headers(Server.of("http://x", tmp_path / "file"), method="GET")
    assert found == {"Authorization": f"Bearer {token}"}


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="empty"),
        pytest.param("secret one two", id="several words"),
        pytest.param("secret\r\nX-Header: y", id="a header in disguise"),
        pytest.param("secrét", id="not ASCII"),
        pytest.param("current-context: [secret", id="no YAML"),
        pytest.param("current-context: secret", id="no users"),
        pytest.param(KUBECONFIG % "client-key-data: secret", id="a user without a token"),
    ],
)
def test_what_holds_no_token_is_refused_and_not_shown(tmp_path: Path, text: str) -> None:
    file = tmp_path / "file"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match="--token-file") as refused:
        headers(Server.of("http://x", file), method="GET")
    assert "secr" not in str(refused.value).replace(str(tmp_path), "")


def test_without_a_file_nothing_is_shown_and_a_missing_one_is_an_error(tmp_path: Path) -> None:
    assert headers("http://x", method="POST") == {}
    assert headers(Server.of("http://x", None), method="GET") == {}
    with pytest.raises(InputError, match="cannot be read"):
        run_async(fetch(Server.of("http://x", tmp_path / "no"), "/v1/services"))
