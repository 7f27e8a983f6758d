"""What of this machine every program sees that runs on it without an image: the system, and what a GPU needs."""

from __future__ import annotations

from pathlib import Path

SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
"""Programs and libraries."""
ETC = ("/etc/alternatives", "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/localtime")
"""The settings without which these do not start."""
DRIVER = Path("/usr/local/nvidia")
"""Where some container hosts put the NVIDIA driver."""
DRIVER_LIBRARIES = (DRIVER / "lib64", DRIVER / "lib")
"""Its libraries."""
GPU_TOPOLOGY = ("/sys/bus/pci", "/sys/devices")
"""Where GPUs sit."""
GPU_PROFILER = "/opt/nvidia/nsight-compute"
"""NVIDIA's profiler."""
