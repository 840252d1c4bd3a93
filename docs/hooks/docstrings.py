"""Extension of the documentation: the sections of our docstrings become Markdown lists."""

from __future__ import annotations

import re
from typing import Any

import griffe

_SECTION = re.compile(r"^(\w[\w ]*)\n-{3,}\n", re.MULTILINE)
_ENTRY = re.compile(r"^(\*{0,2}\w[\w.*, ]*) ?: (?=\S)")


class PlainSections(griffe.Extension):
    """Rewrites every docstring; where it stands in the code decides nothing."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Rewrite the docstring of a module, class, function or attribute."""
        if obj.docstring is not None:
            obj.docstring.value = as_markdown(obj.docstring.value)


def as_markdown(text: str) -> str:
    """A docstring with underlined sections as Markdown with lists."""
    summary, *sections = _SECTION.split(text)
    parts = [summary]
    for title, body in zip(sections[::2], sections[1::2], strict=True):
        parts.append(f"**{title}**\n\n{_body(body)}\n\n")
    return "".join(parts)


def _body(body: str) -> str:
    """The text of a section: entries as a list, Python sessions as code, else as it is."""
    if body.lstrip().startswith(">>>"):
        return f"```python\n{body.strip()}\n```"
    lines: list[str] = []
    for line in body.splitlines():
        entry = _ENTRY.match(line)
        bare = re.fullmatch(r"\w+", line)  # the name alone, explained in the lines below it
        if entry:
            lines.append(f"- `{entry[1].strip()}`: {line[entry.end() :]}")
        elif bare:
            lines.append(f"- `{line}`:")
        else:
            lines.append(line)
    return "\n".join(lines).strip()
