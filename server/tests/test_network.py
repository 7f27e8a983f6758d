"""The network of agents: real tools in a real sandbox with a simulated internet."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
from typing import TYPE_CHECKING

import pytest
from example_tasks import make_tasks
from network_server import Agent, Online, online
from server_process import until

from re_bench.cli.main import main
from re_bench_server.network.policy import NetworkPolicy
from re_bench_server.network.relay import Relay

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ALLOW = ".example.org,8.8.8.8,10.0.0.5,127.0.0.1,8.8.4.4,169.254.169.254,[fd00:ec2::254]"
OPTIONS = ("--network", "proxy", "--allow", ALLOW, "--allow", "allowed.example.org:9000,@packages")
SCORER = """
from re_bench.sandbox import open_backend
from re_bench.sandbox.process import run
from re_bench.sandbox.spec import SandboxSpec
from re_bench.api import RawScore, Task, main

CONNECT = "import socket; socket.create_connection(('8.8.8.8', 80), timeout=5)"

class Connecting(Task):
    profiles = {"cpu": None}

    def score(self, job):
        backend = open_backend()
        finished = run(backend, [backend.python, "-I", "-c", CONNECT], SandboxSpec())
        return RawScore(float(finished.status == 0), finished.stderr[-40:])

if __name__ == "__main__":
    main(Connecting())
"""

missing = [tool for tool in ("curl", "git", "ip", "openssl", "unshare") if shutil.which(tool) is None]
pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(os.geteuid() != 0, reason="only root can make the namespaces of the test's internet"),
    pytest.mark.skipif(bool(missing), reason=f"needs {', '.join(missing)}"),
]


@pytest.fixture(scope="module")
def trying_scorer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Packages of tasks whose scorer tries to connect from a sandbox."""
    site = make_tasks(tmp_path_factory.mktemp("site"))
    (site / "quick" / "score.py").write_text(SCORER)
    return site


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, trying_scorer: Path) -> Iterator[Online]:
    with online(tmp_path_factory.mktemp("proxy"), trying_scorer, *OPTIONS, "--network-mib", "8") as running:
        yield running


@pytest.fixture
def agent(server: Online) -> Iterator[Agent]:
    agent = Agent(server)
    yield agent
    agent.delete()


@pytest.mark.integration
def test_tools_work_through_the_proxy(agent: Agent) -> None:
    plain = agent.run("curl -sS 'http://allowed.example.org/plain?token=secret-0815'")
    assert '"path": "/plain?token=secret-0815"' in plain
    assert '"port": 443' in agent.run("curl -sS https://both.example.org/tls")
    assert '"port": 9000' in agent.run("curl -sS http://allowed.example.org:9000/other-port")
    assert '"body": 5' in agent.run("curl -sS -d hello http://allowed.example.org/post")
    assert '"body": 70000' in agent.run("head -c 70000 /dev/zero | curl -sS -T - http://allowed.example.org/chunks")
    big = "head -c 2000000 /dev/zero > big; curl -sS -T big http://allowed.example.org/expecting"  # 100-continue
    assert '"body": 2000000' in agent.run(big)
    assert "Content-Length: 12" in agent.run("curl -sSI http://allowed.example.org/")
    python = "import urllib.request as u; print(u.urlopen('https://allowed.example.org/python').status)"
    assert agent.run(f'python -c "{python}"').startswith("200")
    agent.run("export PIP_CERT=/etc/ssl/certs/ca-certificates.crt PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1")
    pip = "python -m pip install -q --target t tiny-package"
    assert "4711" in agent.run(f"{pip}; cat t/tiny_package.py")
    assert agent.run("git ls-remote https://allowed.example.org/repository") == "[exit status 0]"
    log = agent.log()
    assert {entry["event"] for entry in log} == {"connected", "ended"}
    assert sorted({entry["host"] for entry in log if entry["event"] == "ended"}) == [
        "allowed.example.org", "both.example.org", "files.pythonhosted.org", "pypi.org",
    ]  # fmt: skip
    assert all(entry["up"] > 50 and entry["down"] > 50 for entry in log if entry["event"] == "ended")
    assert "secret-0815" not in (agent.directory / "network.jsonl").read_text()


def test_sandbox_has_no_direct_network(agent: Agent) -> None:
    assert "Could not resolve host" in agent.run("curl --noproxy '*' -sS http://allowed.example.org/ 2>&1")
    assert "Couldn't connect" in agent.run("curl --noproxy '*' -sS http://8.8.8.8/ 2>&1")
    assert agent.run("ls /run/re-bench").split()[:2] == ["port_forward.py", "proxy.sock"]


def test_network_policy_is_recorded(server: Online, agent: Agent) -> None:
    chosen = {"mode": "proxy", "allow": [*ALLOW.split(","), "allowed.example.org:9000", "@packages"], "limit_mib": 8}
    assert server.health()["network"] == chosen
    assert [event["network"] for event in server.events() if event["event"] == "serving"] == [chosen]
    agent.run("echo 1 > answer.txt")
    assert json.loads((agent.directory / "session.json").read_text())["network"] == chosen
    answer = agent.call("answer", get_final_score=False)
    assert "'network': 'proxy'" in str(answer)
    assert "Network is unreachable" in str(answer)  # in the scoring
    assert "a proxy to `.example.org`" in agent.prompt()
    (line,) = (agent.directory / "attempts.jsonl").read_text().splitlines()
    assert json.loads(line)["attempt"]["details"]["network"] == "proxy"


REFUSED = [
    ("far.example.net", "allow-list"),  # not listed
    ("1.1.1.1", "allow-list"),
    ("allowed.example.org:8443", "allow-list"),  # port not listed
    ("example.org.far.example.net", "allow-list"),
    ("notexample.org", "allow-list"),
    ("loopback.example.org", "not a public address"),
    ("private.example.org", "not a public address"),
    ("mixed.example.org", "not a public address"),  # one of two
    ("cloud.example.org", "not a public address"),
    ("machine.example.org", "the server's own machine"),
    ("8.8.4.4", "the server's own machine"),
    ("10.0.0.5", "not a public address"),  # although listed
    ("127.0.0.1", "not a public address"),
    ("169.254.169.254", "not a public address"),
    ("[fd00:ec2::254]", "not a public address"),
    ("[::ffff:10.0.0.5]", ""),
    ("[fe80::1%25veth0]", "not the name"),
    ("localhost", "not the name of a public host"),
    ("metadata.google.internal", "allow-list"),
    ("167772165", "usual spelling"),  # 10.0.0.5 in other spellings
    ("0xa000005", "not the name"),
    ("0xa.0.0.5", "usual spelling"),
    ("012.0.0.5", "usual spelling"),
    ("10.5", "usual spelling"),
    ("10.0.0.5.", "not a public address"),
    ("allowed.example.org..", "not the name"),
    ("allowed.example.org%00.far.example.net", "not the name"),
    ("%61llowed.example.org", "not the name"),
    ("allowed.example.org@far.example.net", ""),
    ("far.example.net\\@allowed.example.org", ""),
    ("unknown.example.org", "cannot be resolved"),
    ("dead.example.org", "does not answer"),
]
"""Targets, and a word of the reason."""


def test_forbidden_targets_are_refused(server: Online, agent: Agent) -> None:
    messages = []
    for target, _word in REFUSED:
        authority = target if ":" in target.rpartition("]")[2] else f"{target}:443"
        messages += [
            f"GET http://{target}/forbidden HTTP/1.1\r\nHost: allowed.example.org\r\n\r\n".encode(),
            f"CONNECT {authority} HTTP/1.1\r\nHost: allowed.example.org\r\n\r\n".encode(),
        ]
    responses = agent.send(*messages)
    for number, (target, word) in enumerate(REFUSED):
        for response in responses[2 * number : 2 * number + 2]:
            assert re.match(r"HTTP/1.1 (403|502) ", response), (target, response)
            assert word in response, target
    assert server.reached("/forbidden") == []
    assert [entry["event"] for entry in agent.log()] == ["refused"] * len(messages)


def test_other_spellings_of_an_allowed_host(agent: Agent) -> None:
    first, second = agent.send(
        *(
            f"GET HTTP://{name}/spelled HTTP/1.1\r\nHost: evil.example.net\r\nConnection: close\r\n\r\n".encode()
            for name in ("ALLOWED.example.org.", "allowed.Example.ORG:80")
        )
    )
    for response in (first, second):
        assert response.startswith("HTTP/1.1 200")
        assert '["Host", "allowed.example.org"]' in response  # not the client's Host
        assert "evil" not in response


def test_one_request_per_connection(server: Online, agent: Agent) -> None:
    def get(host: str) -> bytes:
        return f"GET http://{host}/pipelined/{host} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode()

    (response,) = agent.send(get("allowed.example.org") + get("other.example.org") + get("private.example.org"))
    assert re.findall(r"HTTP/1.1 \d+", response) == ["HTTP/1.1 200"]
    assert [request["headers"][0][1] for request in server.reached("/pipelined")] == ["allowed.example.org"]


@pytest.mark.parametrize(
    "message",
    [
        b"GET http://allowed.example.org/malformed\r\n\r\n",
        b"GET /malformed HTTP/1.1\r\nHost: allowed.example.org\r\n\r\n",
        b"GET https://allowed.example.org/malformed HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET ftp://allowed.example.org/malformed HTTP/1.1\r\nHost: a\r\n\r\n",
        b"CONNECT allowed.example.org HTTP/1.1\r\nHost: a\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 \r\n\r\n",
        b"A" * 70_000,
    ],
)
def test_malformed_requests_are_refused(server: Online, agent: Agent, message: bytes) -> None:
    (response,) = agent.send(message)
    assert re.match(r"HTTP/1.1 (400|403) ", response), response
    assert server.reached("/malformed") == []


def test_redirects_are_checked(server: Online, agent: Agent) -> None:
    for target in (
        "http://10.0.0.5/redirected",
        "http://far.example.net/redirected",
        "http://169.254.169.254/redirected",
    ):
        quoted = target.replace("/", "%2F").replace(":", "%3A")
        assert "403" in agent.run(
            f"curl -sS -L -o /dev/null -w '%{{http_code}}' http://allowed.example.org/to/{quoted}"
        )
    assert server.reached("/redirected") == []


def test_dns_rebinding_is_refused(server: Online, agent: Agent) -> None:
    message = b"GET http://rebinding.example.org/rebound HTTP/1.1\r\nHost: a\r\n\r\n"
    responses = agent.send(*[message] * 4)
    assert [response[9:12] for response in responses] == ["200", "403", "403", "403"]
    assert [request["to"] for request in server.reached("/rebound")] == ["8.8.8.8"]


def test_traffic_is_limited(server: Online, agent: Agent) -> None:
    assert int(agent.run("curl -sS http://allowed.example.org/size/5000000 | wc -c").split()[0]) == 5_000_000
    assert (
        int(agent.run("curl -sS https://allowed.example.org/size/5000000 2>/dev/null | wc -c").split()[0]) < 4_000_000
    )
    for scheme in ("http", "https"):
        assert "403" in agent.run(f"curl -sSv {scheme}://allowed.example.org/after 2>&1")
    assert "used up its 8 MiB" in agent.run("curl -sS http://allowed.example.org/after")
    assert server.reached("/after") == []
    other = Agent(server)  # has its own limit
    assert '"port": 80' in other.run("curl -sS http://allowed.example.org/other")
    other.delete()


MANY = """
import socket, time
proxies = []
for number in range(70):
    proxy = socket.create_connection(("127.0.0.1", 18081), timeout=10)
    proxy.sendall(b"CONNECT allowed.example.org:443 HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n")
    proxies.append(proxy)
print(sorted(proxy.recv(100).split()[1].decode() for proxy in proxies).count("429"))
idle = [socket.socket(socket.AF_UNIX) for number in range(900)]
for one in idle:
    one.connect("/run/re-bench/proxy.sock")
one.settimeout(60)
print(one.recv(1))
time.sleep(60)
"""


def test_connections_are_limited(server: Online, agent: Agent) -> None:
    agent.run(f"cat > many.py <<'END'\n{MANY}\nEND\npython -u many.py > many.out & sleep 1")
    assert until(lambda: re.match("6\nb''", agent.run("cat many.out")), 90)
    other = Agent(server)
    assert '"port": 80' in other.run("curl -sS http://allowed.example.org/")
    other.delete()
    assert '"port": 80' not in agent.run("curl -sS http://allowed.example.org/")
    agent.run("kill %1")
    assert until(lambda: '"port": 80' in agent.run("curl -sS http://allowed.example.org/"))


def test_model_gateway_bypasses_the_proxy(server: Online) -> None:
    agent = Agent(server, "example_equipped")
    ask = 'curl -sS -H "Authorization: Bearer $OPENAI_API_KEY" $OPENAI_BASE_URL/models'
    assert "gpt-3.5-turbo" in agent.run(ask)
    assert agent.log() == []
    assert '"port": 80' in agent.run("curl -sS http://allowed.example.org/")
    agent.delete()


def test_used_traffic_survives_a_restart(tmp_path: Path) -> None:
    async def used() -> str:
        log = tmp_path / "network.jsonl"
        log.write_text('{"event": "ended", "up": 1048000, "down": 576}\n{"torn')
        relay = Relay(NetworkPolicy("proxy", ("*",), 1), tmp_path / "socket", log)
        await relay.open()
        reader, writer = await asyncio.open_unix_connection(tmp_path / "socket")
        writer.write(b"CONNECT 8.8.8.8:443 HTTP/1.1\r\n\r\n")
        answer = await reader.read()
        writer.close()
        await relay.close()
        return answer.decode()

    assert "used up its 1 MiB" in asyncio.run(used())


@pytest.mark.integration
def test_open_network_is_not_for_scorings(tmp_path_factory: pytest.TempPathFactory, trying_scorer: Path) -> None:
    with online(tmp_path_factory.mktemp("open"), trying_scorer, "--network", "open") as server:
        agent = Agent(server)
        assert '"port": 443' in agent.run("env | grep -i proxy; curl -sS https://far.example.net/")
        assert "the unrestricted network" in agent.prompt()
        assert '"to": "10.0.0.5"' in agent.run("curl -sS http://10.0.0.5/")
        assert server.health()["network"] == {"mode": "open"}
        assert json.loads((agent.directory / "session.json").read_text())["network"] == {"mode": "open"}
        assert [event["level"] for event in server.events() if event["event"] == "network_open"] == ["warning"]
        agent.run("echo 1 > answer.txt")
        answer = str(agent.call("answer", get_final_score=True))
        assert "Network is unreachable" in answer


@pytest.mark.parametrize(
    ("options", "word"),
    [
        (["--network", "proxy"], "--allow"),
        (["--allow", "example.org"], "--network proxy"),
        (["--network", "open", "--network-mib", "5"], "--network proxy"),
        (["--network", "proxy", "--allow", "https://example.org"], "https"),
        (["--network", "proxy", "--allow", "example.org,"], "''"),
        (["--network", "proxy", "--allow", "@unknown"], "@packages"),
        (["--network", "proxy", "--allow", "10.0.0.0/8"], "10.0.0.0/8"),
        (["--network", "proxy", "--allow", "*.1.1.1.1"], "subdomains"),
        (["--network", "proxy", "--allow", "py*.org"], "py*.org"),
        (["--network", "proxy", "--allow", "example.org:0"], "port"),
        (["--network", "proxy", "--allow", "localhost"], "public"),
        (["--network", "proxy", "--allow", "faß.de"], "xn--"),
        (["--network", "proxy", "--allow", "example.org", "--sandbox", "none"], "needs a sandbox"),
    ],
)
def test_contradictory_options_are_rejected(
    tmp_path: Path, options: list[str], word: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["serve", *options, "--port", "0", "--state", str(tmp_path)])
    assert (caught.value.code, word in capsys.readouterr().err) == (2, True)
