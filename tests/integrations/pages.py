"""The complete examples of docs/integrations: what a page shows is what the tests run."""

from __future__ import annotations

from pathlib import Path

from observing import ROOT

PAGES = ROOT / "docs/integrations"


def example(page: str, name: str = "train.py") -> str:
    """The indented block of a page whose first line is `# NAME`."""
    return block(page, f"# {name}\n")


def block(page: str, first: str) -> str:
    """The indented block of a page that begins with `first`."""
    lines = (PAGES / f"{page}.md").read_text(encoding="utf-8").splitlines()
    begin = next(at for at, line in enumerate(lines) if f"{line}\n".startswith(f"    {first}"))
    found: list[str] = []
    for line in lines[begin:]:
        if line and not line.startswith("    "):
            break
        found.append(line[4:])
    return "\n".join(found).rstrip() + "\n"


def write_example(page: str, folder: Path, name: str = "train.py") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(example(page, name), encoding="utf-8")
    return path
