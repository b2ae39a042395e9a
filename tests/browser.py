"""A real browser for the tests of pages."""

import json
import shutil
from collections.abc import Callable
from typing import Any

import pytest
from selenium import webdriver
from selenium.common.exceptions import StaleElementReferenceException
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import WebDriverWait

QUIET = (
    *("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    *("--disable-quic", "--no-first-run"),
)

needs_browser = pytest.mark.skipif(
    not (shutil.which("chromium") and shutil.which("chromedriver")),
    reason="chromium or chromium-driver is not installed",
)


class Browser(webdriver.Chrome):
    """Chromium with what the tests ask of it; one for all of them."""

    def __init__(self) -> None:
        options = webdriver.ChromeOptions()
        options.binary_location = shutil.which("chromium") or ""
        for option in QUIET:
            options.add_argument(option)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        super().__init__(options, webdriver.ChromeService(shutil.which("chromedriver")))
        self.set_script_timeout(
            300
        )  # axe reads thousands of elements, on a machine that may be busy

    def one(self, selector: str) -> WebElement:
        return self.find_element(By.CSS_SELECTOR, selector)

    def all(self, selector: str) -> list[WebElement]:
        return self.find_elements(By.CSS_SELECTOR, selector)

    def until(self, holds: Callable[[], Any]) -> None:
        """Waits; an element that the page replaces between two looks is looked for again."""
        replaced = [StaleElementReferenceException]
        WebDriverWait(self, 60, ignored_exceptions=replaced).until(lambda _: holds())

    def show(self, name: str) -> str:
        """Scrolls to a figure and waits for its curves; returns a selector of the figure."""
        self.execute_script("arguments[0].scrollIntoView()", self.one(f"#{name} .chart"))
        self.until(lambda: self.all(f"#{name} .curve"))
        return f"#{name}"

    def emulate(self, media: str = "", scheme: str = "light") -> None:
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        settings = {"media": media, "features": features}
        self.execute_cdp_cmd("Emulation.setEmulatedMedia", settings)

    def log(self, kind: str) -> list[dict[str, Any]]:
        return list(webdriver.Chrome.get_log(self, kind))

    def requests(self) -> list[str]:
        events = [json.loads(entry["message"])["message"] for entry in self.log("performance")]
        return [
            event["params"]["request"]["url"]
            for event in events
            if event["method"] == "Network.requestWillBeSent"
        ]
