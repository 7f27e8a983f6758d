"""The judge: compile a Rust program and run it test by test, in sandboxes.

Compiler and program have separate sandboxes. The first sees the Rust toolchain and the system's C compiler. The
second sees the binary, the system's libraries without its commands, and the input of the current test; other inputs and
expected outputs never enter a sandbox. A program's sandbox ends with its last test; between tests its processes are
killed and its files removed.

What is trusted in a sandbox: its harness (``harness.rs``) reports CPU time, memory and exit status, and runs as the
same user as the program. It cannot be read or written through ``/proc`` (it is not dumpable), by ``ptrace`` or
``process_vm_writev`` (the sandbox's filter), and its socket cannot be taken from it. The program can kill or stop it,
which fails the test. It adopts and reaps all descendants, so that their CPU time counts too. Wall-clock time and the
memory of all processes together are also watched from outside.
"""

from __future__ import annotations

from rust_codecontests.judge.judging import Judge
from rust_codecontests.judge.verdicts import Judgement, Limits, Test, Verdict

__all__ = ["Judge", "Judgement", "Limits", "Test", "Verdict"]
