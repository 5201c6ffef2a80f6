"""All static checks, one line each; --fix formats in place. Started by ./dev lint."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MAX_LINES = 700
SOURCE_SUFFIXES = {".h", ".cpp", ".py", ".sh", ".cmake", ".ts", ".tsx", ".css"}
# Registries are reached through their clients' configuration; no file names their hosts.
REGISTRY_HOSTS = [
    ".".join(parts)
    for parts in (
        ("pypi", "org"),
        ("pythonhosted", "org"),
        ("download", "pytorch", "org"),
        ("npmjs", "org"),
        ("deb", "debian", "org"),
        ("security", "debian", "org"),
        ("proxy", "golang", "org"),
        ("crates", "io"),
    )
]


def run(*command: str) -> list[str]:
    """Empty when the command succeeds, else its output."""
    done = subprocess.run(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    if done.returncode == 0:
        return []
    return done.stdout.rstrip().splitlines() or [f"exit code {done.returncode}"]


def project_files() -> list[Path]:
    """Tracked files, and untracked ones that git does not ignore."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, stdout=subprocess.PIPE, check=True,
    ).stdout.decode()  # fmt: skip
    return [path for name in listed.split("\0") if name and (path := ROOT / name).is_file()]


def cpp_files() -> list[str]:
    return [str(path) for path in project_files() if path.suffix in {".h", ".cpp"}]


def check_sizes() -> list[str]:
    faults: list[str] = []
    for path in project_files():
        if path.suffix in SOURCE_SUFFIXES:
            lines = len(path.read_text().splitlines())
            if lines > MAX_LINES:
                faults.append(f"{path.relative_to(ROOT)}: {lines} lines, more than {MAX_LINES}")
    return faults


def check_hosts() -> list[str]:
    faults: list[str] = []
    for path in project_files():
        text = path.read_text(errors="replace")
        found = [host for host in REGISTRY_HOSTS if host in text]
        faults += [f"{path.relative_to(ROOT)}: names {host}" for host in found]
    return faults


CHECKS: dict[str, Callable[[], list[str]]] = {
    "ruff check": lambda: run("ruff", "check", "--quiet", "--output-format", "concise", "."),
    "ruff format": lambda: run("ruff", "format", "--quiet", "--diff", "."),
    "clang-format": lambda: run(
        "clang-format", "--dry-run", "-Werror", "--ferror-limit=1", *cpp_files()
    ),
    "pyright": lambda: run("pyright", "--pythonpath", sys.executable),
    "page": lambda: run(sys.executable, "tools/build_page.py", "check"),
    "layers": lambda: run(sys.executable, "tools/check_layers.py"),
    "docs": lambda: run(sys.executable, "tools/check_docs.py"),
    "file sizes": check_sizes,
    "host names": check_hosts,
}


def main(arguments: list[str]) -> int:
    if arguments == ["--fix"]:
        run("ruff", "check", "--fix", "--quiet", ".")
        run("ruff", "format", "--quiet", ".")
        run("clang-format", "-i", *cpp_files())
    elif arguments:
        print(f"lint: unknown argument '{arguments[0]}'\nhint: ./dev lint [--fix]", file=sys.stderr)
        return 2
    failed = False
    for name, check in CHECKS.items():
        faults = check()
        failed |= bool(faults)
        print(f"{'FAIL' if faults else 'ok  '}  {name}", flush=True)
        for fault in faults[:40]:
            print(f"      {fault}")
        if len(faults) > 40:
            print(f"      ... and {len(faults) - 40} more lines")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
