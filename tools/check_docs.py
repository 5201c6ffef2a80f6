"""Checks that the docs name what exists: settings with their defaults, and links to files."""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SETTINGS = ROOT / "docs/reference/settings.md"
LINK = re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)")


def defaults() -> dict[str, float]:
    """Every setting of src/model/settings.h with its default."""
    text = (ROOT / "src/model/settings.h").read_text()
    struct = text[text.index("struct Settings {") : text.index("Status set(")]
    found: dict[str, float] = {}
    for key, value in re.findall(r"(\w+) = ([\d.]+(?:LL << \d+)?)", struct):
        number, _, shift = value.partition("LL << ")
        found[key] = float(number) * 2 ** int(shift or 0)
    return found


def documented() -> dict[str, float]:
    found: dict[str, float] = {}
    for line in SETTINGS.read_text().splitlines():
        cells = line.split("|")
        keys = re.findall(r"`(\w+)`", cells[1]) if len(cells) > 3 else []
        for key, value in zip(keys, cells[2].split(",") if keys else [], strict=False):
            if re.fullmatch(r"[\d.]+", value.strip()):
                found[key] = float(value)
    return found


def main() -> int:
    faults: list[str] = []
    real, told = defaults(), documented()
    for key in sorted(real.keys() | told.keys()):
        if real.get(key) != told.get(key):
            faults.append(f"settings.md: {key} is {told.get(key)}, in the code {real.get(key)}")
    for path in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]:
        for target in LINK.findall(path.read_text()):
            if not (path.parent / target).exists():
                faults.append(f"{path.relative_to(ROOT)}: no such file: {target}")
    print("\n".join(faults), end="\n" if faults else "")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
