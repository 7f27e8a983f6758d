"""The operator's choice: which network agents have."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

from re_bench.errors import UsageError
from re_bench.sandbox.bubblewrap import Bubblewrap
from re_bench.sandbox.spec import SandboxUnavailableError
from re_bench_server.network.allow_list import AllowList
from re_bench_server.network.hosts import HostError

Mode = Literal["none", "proxy", "open"]
MODES: tuple[Mode, ...] = get_args(Mode)
_DEFAULT_MIB = 10240


@dataclass(frozen=True)
class NetworkPolicy:
    """Which network the sandboxes of sessions have. Those of scorings never have one."""

    mode: Mode = "none"
    allow: tuple[str, ...] = ()
    """The hosts that may be reached through the proxy: patterns and names of ready lists."""
    limit_mib: int = _DEFAULT_MIB
    """What a session may send and receive through the proxy together, in MiB."""

    @classmethod
    def from_options(cls, mode: Mode, allow: list[str], limit_mib: int | None) -> NetworkPolicy:
        """Return the policy that options of a command line describe; a value of ``allow`` may hold several, by commas.

        Raises:
            UsageError: if they contradict one another, or a pattern is none.
        """
        patterns = tuple(pattern.strip() for value in allow for pattern in value.split(","))
        if mode != "proxy" and (patterns or limit_mib is not None):
            raise UsageError(f"--allow and --network-mib are for --network proxy, not for --network {mode}")
        if mode == "proxy" and not patterns:
            raise UsageError(
                "--network proxy needs the hosts that agents may reach: --allow HOST[,HOST...], --allow @packages, "
                "or --allow '*' for every public one"
            )
        try:
            AllowList(patterns)
        except HostError as error:
            raise UsageError(f"--allow: {error}") from None
        return cls(mode, patterns, limit_mib or _DEFAULT_MIB)

    def check_sandbox(self, name: str) -> None:
        """Do nothing if a backend of this name can hold programs to the proxy, or need not.

        Raises:
            UsageError: if it cannot, or there is no bubblewrap, in which the proxy itself runs.
        """
        if self.mode == "proxy" and name == "none":
            raise UsageError("--network proxy needs a sandbox: without one nothing leads programs through the proxy")
        if self.mode == "proxy":
            try:
                Bubblewrap().probe()
            except SandboxUnavailableError as error:
                raise UsageError(f"--network proxy needs bubblewrap for the proxy itself: {error}") from None

    def record(self) -> dict[str, Any]:
        """Return it as JSON, for logs and for readers of a session's directory."""
        if self.mode != "proxy":
            return {"mode": self.mode}
        return {"mode": self.mode, "allow": list(self.allow), "limit_mib": self.limit_mib}

    def describe(self) -> str:
        """Return what an agent and an operator are told, in a few words."""
        if self.mode == "open":
            return "the network of the server's machine, without any restriction or record"
        if self.mode == "none":
            return "no network"
        return f"a proxy to {', '.join(f'`{pattern}`' for pattern in self.allow)} as the only network"
