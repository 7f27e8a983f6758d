"""Provide the browser."""

from __future__ import annotations

from chromium import browser

__all__ = ["browser"]
