"""A real browser for the tests of pages: Debian's chromium without a window, driven through its own driver."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from selenium.webdriver import Chrome, ChromeOptions, ChromeService

if TYPE_CHECKING:
    from pathlib import Path

_QUIET = (
    "--headless=new",
    "--hide-scrollbars",
    "--disable-background-networking",
    "--disable-component-update",
    "--no-first-run",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
)


@dataclass
class Browser:
    """A browser, and what its pages have done since the last question."""

    driver: Chrome

    def open(self, address: Path | str, **settings: Any) -> None:
        """Show a page, and forget what went before."""
        self.set(**settings)
        self.console()
        self.requests()
        self.driver.get(address if isinstance(address, str) else address.as_uri())

    def set(self, *, dark: bool = False, width: int = 1280, height: int = 900, media: str = "") -> None:
        """Choose colour scheme, size of the window in CSS pixels, and ``print`` or the screen."""
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": media, "features": [scheme]})
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)

    def _log(self, name: str) -> list[dict[str, Any]]:
        entries: list[dict[str, Any]] = self.driver.get_log(name)  # type: ignore[no-untyped-call]
        return entries

    def run(self, script: str, *arguments: Any) -> Any:
        """Return what a function body of JavaScript returns in the page."""
        return self.driver.execute_script(script, *arguments)

    def console(self) -> list[str]:
        """Return the messages of the console since the last call."""
        return [entry["message"] for entry in self._log("browser")]

    def requests(self) -> list[str]:
        """Return the addresses that were asked for since the last call, the page's own too, but no images in it."""
        entries = (json.loads(entry["message"])["message"] for entry in self._log("performance"))
        asked = (e["params"]["request"]["url"] for e in entries if e["method"] == "Network.requestWillBeSent")
        return [address for address in asked if not address.startswith("data:image/")]


def start(chromium: str, chromedriver: str) -> Browser:
    """Start a browser that reaches nothing but this machine."""
    options = ChromeOptions()
    options.binary_location = chromium
    for argument in (*_QUIET, *(["--no-sandbox"] if os.geteuid() == 0 else [])):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = Chrome(options, ChromeService(chromedriver))
    driver.set_script_timeout(30)
    return Browser(driver)
