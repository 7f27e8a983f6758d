"""The model of a task: what sandboxes and files show of it, and where keys go."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import openai
import pytest
from server_process import Server, opened, text, write

from re_bench.errors import UsageError
from re_bench.task.chat_model import ChatModel
from re_bench.task.discovery import find_tasks
from re_bench.task.manifest import Model
from re_bench_gateway import Budget
from re_bench_server.catalog import ServedTask, build_catalog
from re_bench_server.prompt import prompt
from re_bench_server.services.model import ModelGateways
from re_bench_server.settings import Settings
from re_bench_server.subprocess_env import environment_without_secrets

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.integration

KEY = "sk-test-of-a-client-0123456789abcdef"
MODEL = "gpt-3.5-turbo-0125"


ASK = """
import openai

client = openai.OpenAI()
for model in ("gpt-3.5-turbo-0125", "another-name", "gpt-4o"):
    message = {"role": "user", "content": "say hi"}
    try:
        completion = client.chat.completions.create(model=model, messages=[message], max_tokens=10)
        print(completion.choices[0].message.content)
    except openai.APIStatusError as error:
        print(error.status_code, type(error).__name__)
"""


@pytest.mark.parametrize("client", ["openreward", "ors"])
def test_sandbox_reaches_the_stand_in_with_a_token(server: Server, client: str) -> None:
    asyncio.run(asking(server, client))
    assert KEY not in server.log.read_text()
    for path in server.state.rglob("*"):
        assert not path.is_file() or KEY.encode() not in path.read_bytes(), path


async def asking(server: Server, client: str) -> None:
    async with opened(client, server.url, "example_equipped", openai_api_key=KEY) as session:
        assert "a stand-in for the model" in (await session.get_prompt())[0].text
        await write(session, "ask.py", ASK.encode())
        ran = await session.call_tool("bash", {"command": "echo $OPENAI_API_KEY; python ask.py"})
        token, outcome, told_by_alias, refused = text(ran).splitlines()[:4]
        assert outcome == told_by_alias == "asked: say hi"
        assert refused == "404 NotFoundError"  # no other model
        assert KEY not in text(ran)
        assert len(token) > 20
        ran = await session.call_tool("bash", {"command": "env; cat /proc/*/environ /proc/*/cmdline | tr '\\0' '\\n'"})
        assert KEY not in text(ran)


class Upstream(ThreadingHTTPServer):
    """A fake of the OpenAI API that records keys and models."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answering)
        self.keys: list[str] = []
        self.models: list[str] = []


class Answering(BaseHTTPRequestHandler):
    server: Upstream

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.models.append(request["model"])
        self.server.keys.append(self.headers["Authorization"])
        body = json.dumps({
            "id": "x", "object": "chat.completion", "created": 1, "model": MODEL,
            "choices": [{"index": 0, "message": {"role": "assistant", "content": "hi"}, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
        }).encode()  # fmt: skip
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_arguments: object) -> None:
        pass


@contextlib.contextmanager
def running_upstream() -> Iterator[Upstream]:
    with Upstream() as running:
        threading.Thread(target=running.serve_forever).start()
        yield running
        running.shutdown()


@pytest.fixture
def upstream() -> Iterator[Upstream]:
    with running_upstream() as running:
        yield running


@pytest.fixture
def paper(tmp_path: Path) -> ServedTask:
    manifest = SimpleNamespace(model=Model(name=MODEL, key=("paper",)))
    task: Any = SimpleNamespace(import_directory=tmp_path, name="made_up", manifest=manifest, chat_model=None)
    return ServedTask(task, "paper")


def test_key_goes_only_to_the_gateway(
    upstream: Upstream, paper: ServedTask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", f"http://127.0.0.1:{upstream.server_port}/v1")
    asyncio.run(with_keys(paper, tmp_path / "models"))
    assert upstream.keys == [f"Bearer {KEY}{number}" for number in (1, 2, 2)]
    logged = "".join(path.read_text() for path in (tmp_path / "models").iterdir())
    assert '"first"' in logged
    assert KEY not in logged


async def with_keys(paper: ServedTask, directory: Path) -> None:
    models = ModelGateways(directory)
    try:
        for name, key in (("first", f"{KEY}1"), ("second", f"{KEY}2")):
            access = await models.open(paper, name, key, Budget(dollars=1.0))
            assert not access.stand_in
            assert key not in repr(access)
            assert await asyncio.to_thread(asked, access) == "hi"
            await access.close()
            spent = access.dollars or 0.0
            assert spent > 0
            with pytest.raises(openai.AuthenticationError):
                await asyncio.to_thread(asked, access)
        (gateway,) = models._running.values()
        os.kill(gateway.pid, signal.SIGKILL)
        access = await models.open(paper, "second", f"{KEY}2", Budget(dollars=1.0))
        assert await asyncio.to_thread(asked, access) == "hi"
        await access.refresh()
        assert access.dollars == pytest.approx(2 * spent)  # calls of the first gateway count
        await access.close()
    finally:
        await models.close()


def test_chosen_model_replaces_the_tasks_model(
    upstream: Upstream, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", f"http://127.0.0.1:{upstream.server_port}/v1")
    name = next(name for name, task in find_tasks().items() if task.manifest.model)
    chosen = ChatModel("other", dollars_in=1e6, dollars_out=2e6, context=1000, max_output=1000)
    (served,) = build_catalog("paper", [name], chosen).by_id.values()
    assert served.profile.anchors is None
    assert "`other` (also under the name `gpt-3.5-turbo-0125`" in prompt(
        served, Settings(state=tmp_path), "/w", stand_in=False
    )

    async def ask() -> float | None:
        models = ModelGateways(tmp_path / "models")
        try:
            access = await models.open(served, "session", KEY, Budget(dollars=10.0**4))
            assert await asyncio.to_thread(asked, access) == "hi"
            await access.close()
            return access.dollars
        finally:
            await models.close()

    assert asyncio.run(ask()) == 3.0
    assert upstream.models == ["other"]


def test_unused_model_option_is_rejected() -> None:
    name = next(name for name, task in find_tasks().items() if task.manifest.model)
    with pytest.raises(UsageError, match="--model x: no task uses a real chat model in profile cpu"):
        build_catalog("cpu", [name], ChatModel("x"))


def asked(access: Any) -> str:
    with openai.OpenAI(api_key=access.token, base_url=access.gateway.address, max_retries=0) as client:
        message = {"role": "user", "content": "say hi"}
        completion = client.chat.completions.create(model=MODEL, messages=[message], max_tokens=5)  # type: ignore[list-item]
        return str(completion.choices[0].message.content)


def test_subprocesses_get_no_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENREWARD_API_KEY", "AWS_SECRET_ACCESS_KEY", "HF_TOKEN", "openai_api_key"):
        monkeypatch.setenv(name, KEY)
    assert KEY not in environment_without_secrets(PLAIN="x").values()
    assert environment_without_secrets(PLAIN="x")["PLAIN"] == "x"
    assert environment_without_secrets(OPENAI_API_KEY="a session's token")["OPENAI_API_KEY"] == "a session's token"
