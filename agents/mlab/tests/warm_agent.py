"""What a process does from which agents are forked: it imports what they do, and what their first call would import."""

import contextlib
import importlib

import openai

from mlab_agent import cli  # noqa: F401 - imports the rest
from mlab_agent.fake_server import FakeServer

with contextlib.suppress(ImportError):  # of the extra "ors"
    importlib.import_module("mlab_agent.workspaces.ors")

with (
    FakeServer(lambda _request: "yes") as _server,
    openai.OpenAI(api_key="none", base_url=_server.url) as _client,
):
    _client.chat.completions.create(model="any", messages=[{"role": "user", "content": "?"}])
