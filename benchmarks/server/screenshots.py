"""Screenshots of the explorer for the documentation, of a server that this script starts.

Needs chromium, a font with Korean letters, and Pillow.

python benchmarks/server/screenshots.py docs/pictures
"""

from __future__ import annotations

import argparse
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page, sync_playwright

FLAGS = ["--no-sandbox", "--headless", "--disable-gpu", "--disable-background-networking", "--hide-scrollbars"]
COLOURS = 200
# For each picture: link, language of the browser, size of the window, colour scheme, and what to do first.
PICTURES = {
    "context_en": ("#context", "en-GB", (1180, 1610), "light", ""),
    "context_ko": ("#context", "ko-KR", (1180, 1720), "light", ""),
    "one_point": ("#context?layer=0", "en-GB", (1180, 880), "dark", ""),
    "mix": ("#mix?w=-6,-6,6", "en-GB", (1180, 830), "light", ""),
    "expects": ("#expects", "en-GB", (1180, 1150), "light", ""),
    "neighbours": ("#neighbours", "en-GB", (1180, 2070), "light", "#example-text"),
    "unknown_ko": ("#unknown", "ko-KR", (1180, 900), "light", ""),
    "phone": ("#context?lang=ko", "ko-KR", (375, 812), "dark", ""),
}


def serve(port: int) -> subprocess.Popen[bytes]:
    server = subprocess.Popen(
        [sys.executable, "-m", "pyelmo", "serve", "en", "ko", "--precision", "int8", "--port", str(port)],
        stderr=subprocess.DEVNULL,
    )
    while True:
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/health").close()
            return server
        except OSError:
            time.sleep(0.2)


def take(page: Page, address: str, click: str, path: Path) -> None:
    page.goto(address)
    page.wait_for_selector("main h1")
    page.wait_for_load_state("networkidle")
    if click:
        page.locator(click).click()
        page.wait_for_selector("svg .dot", timeout=60_000)
    if path.stem.endswith("phone"):
        page.evaluate("document.querySelector('.map-area').scrollIntoView()")
    page.wait_for_timeout(500)
    page.screenshot(path=path)
    with Image.open(path) as picture:  # a palette makes the file four times smaller
        small = picture.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)
    small.save(path, optimize=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output", type=Path, help="folder of the pictures")
    args = parser.parse_args()
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    server = serve(port)
    try:
        with sync_playwright() as driver:
            browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
            for name, (link, locale, (width, height), scheme, click) in PICTURES.items():
                size = {"width": width, "height": height}
                context = browser.new_context(
                    viewport=size, locale=locale, color_scheme=scheme, reduced_motion="reduce"
                )
                path = args.output / f"explorer_{name}.png"
                take(context.new_page(), f"http://127.0.0.1:{port}/{link}", click, path)
                context.close()
                print(f"{path}: {path.stat().st_size:,} bytes")
            browser.close()
    finally:
        server.terminate()
        server.wait()


if __name__ == "__main__":
    main()
