"""The configuration of a sandbox, part of a sample's specification and so of Inspect's logs."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from re_bench.errors import UsageError
from re_bench_server.settings import Settings


class SandboxConfig(BaseModel):
    """What a sandbox offers, and the task whose session it belongs to."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    task: str | None = None
    """The id of a task of re-bench; None for a sandbox alone."""
    profile: str = "auto"
    """The task's profile."""
    network: Literal["none", "proxy", "open"] = "none"
    """No network, a proxy to the hosts in ``allow``, or the machine's own network."""
    allow: tuple[str, ...] = ()
    """The hosts that can be reached through the proxy."""
    hours: float = Field(default=8.0, gt=0)
    """Working hours in which a session can run commands."""
    max_attempts: int = Field(default=100, ge=1)
    """How many attempts of a session are scored."""
    memory_mib: int = Field(default=Settings.memory_mib, gt=0)
    """Memory of all programs in the sandbox together, and what its ``/tmp`` may hold, in MiB."""
    disk_mib: int = Field(default=Settings.disk_mib, gt=0)
    """How much the working directory, the home directory and ``/var/tmp`` may grow together, in MiB."""
    processes: int = Field(default=Settings.processes, gt=0)
    """Processes and threads at a time."""
    gpu: str | None = None
    """Index or UUID of the one GPU that programs may use; a task's session has the one that its profile asks for."""

    @model_validator(mode="after")
    def _check_task(self) -> Self:
        if self.task is not None and self.gpu is not None:
            raise ValueError("gpu is for a sandbox without a task; a task's profile says whether it has one")
        return self

    @classmethod
    def of(cls, config: BaseModel | str | None) -> SandboxConfig:
        """Return the configuration that Inspect gives a provider: an object, or the path of a TOML file.

        Raises:
            UsageError: if it is another provider's, or the file cannot be used.
        """
        if config is None:
            return cls()
        if isinstance(config, cls):
            return config
        if not isinstance(config, str):
            raise UsageError(f"the sandbox rebench takes a SandboxConfig or a TOML file, not {type(config).__name__}")
        try:
            return cls.model_validate(tomllib.loads(Path(config).read_text(encoding="utf-8")))
        except OSError as error:
            raise UsageError(f"{config}: the sandbox's configuration cannot be read ({error.strerror})") from None
        except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            raise UsageError(f"{config}: the sandbox's configuration is no TOML: {error}") from None
        except ValidationError as error:
            raise UsageError(f"{config}: {problems_of(error)}") from None


def problems_of(error: ValidationError) -> str:
    """Return what is wrong with which fields."""
    return "; ".join(f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors())
