"""
Hooks of the documentation: every link and picture of the finished pages is followed.

mkdocs checks what is written in Markdown; this checks what came out, whoever made it.
"""

from __future__ import annotations

import logging
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

from mkdocs.config.defaults import MkDocsConfig

log = logging.getLogger("mkdocs.hooks.links")


class Links(HTMLParser):
    """What a page points to, what can be pointed to in it, and what a browser would fetch."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.targets: list[str] = []
        self.anchors: set[str] = set()
        self.fetched: list[str] = []
        self.feed(page.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note links, anchors, and what is loaded with the page."""
        found = {name: value for name, value in attrs if value}
        if "id" in found:
            self.anchors.add(found["id"])
        address = found.get("href") or found.get("src")
        if address is None:
            return
        self.targets.append(address)
        if tag != "a" and found.get("rel") != "canonical":
            self.fetched.append(address)


def on_post_build(config: MkDocsConfig) -> None:
    """Warn, which is an error in strict mode, of every link that leads nowhere."""
    for fault in faults(Path(config.site_dir)):
        log.warning(fault)


def faults(site: Path) -> list[str]:
    """One line for every broken link of the pages in a folder."""
    pages = {page.resolve(): Links(page) for page in sorted(site.rglob("*.html"))}
    found: list[str] = []
    for page, links in pages.items():
        name = page.relative_to(site.resolve())
        outside = [address for address in links.fetched if urlsplit(address).netloc]
        found += [f"{name} fetches {address} from the network" for address in outside]
        found += [
            f"{name}: {fault}" for target in links.targets if (fault := _fault(target, page, pages))
        ]
    return found


def _fault(target: str, page: Path, pages: dict[Path, Links]) -> str:
    """What is wrong with a link; nothing when it is fine."""
    parts = urlsplit(target)
    if parts.scheme in ("http", "https"):
        return "" if "." in parts.netloc and " " not in target else f"{target} is no address"
    if parts.scheme:
        return "" if parts.scheme in ("mailto", "data", "javascript") else f"{target} is no address"
    if page.name == "404.html":  # its links begin at the root of a server
        return ""
    file = page if not parts.path else (page.parent / unquote(parts.path)).resolve()
    if not file.is_file():
        return f"{target} is not there"
    anchor = unquote(parts.fragment)
    if anchor and file in pages and anchor not in pages[file].anchors:
        return f"{target} has no such anchor"
    return ""
