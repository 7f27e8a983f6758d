"""The judge: it compiles a Rust program and runs it test by test, both in the sandbox.

Compiler and program get sandboxes of their own. The first sees the Rust toolchain and the system's C compiler. The
second sees the binary, the system's libraries without its commands, and the input of the test that runs: neither the
other inputs nor any expected output, which never enter a sandbox. A program's sandbox ends with its last test, and all
that it left goes with it; between two tests its processes are killed and its files removed.

What is believed of a sandbox: its harness (``harness.rs``) reports CPU time, memory and exit status, and runs as the
same user as the program. It cannot be read or written through ``/proc`` (it is not dumpable), by ``ptrace`` or
``process_vm_writev`` (the sandbox's filter), and its socket cannot be taken from it. The program can kill or stop it,
which fails the test. It adopts and reaps all descendants, so that their CPU time counts too. Wall-clock time and the
memory of all processes together are also watched from outside.
"""

from __future__ import annotations

from rust_codecontests.judge.judging import Judge
from rust_codecontests.judge.verdicts import Judgement, Limits, Test, Verdict

__all__ = ["Judge", "Judgement", "Limits", "Test", "Verdict"]
