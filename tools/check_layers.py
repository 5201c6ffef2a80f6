"""Checks which part of the project may know which. Prints one line a fault.

* src/: a stage includes itself and earlier ones of STAGES; CMakeLists.txt has the same order.
* Python.h and nanobind are seen by python/bindings alone, which sees only BINDING_STAGES.
* `import stepscope` imports no torch, nor does what it imports at module level.
* python/stepscope is a guest: no thread, no signal handler, no write to the environment.
"""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
STAGES = [
    *("base", "model", "wire", "ring", "recorder", "sampler", "agent"),
    *("engine", "tuner", "simulator", "probe", "store", "report", "exporter"),
    *("serve", "hub", "web", "cli"),
]
BINDING_STAGES = {"base", "model", "wire", "ring", "recorder", "engine"}
PUBLIC_STAGES = {"base", "model", "wire", "ring", "recorder"}  # of include/stepscope
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)
CPP_SUFFIXES = {".h", ".cpp"}


def cpp_files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.suffix in CPP_SUFFIXES)


def stage_includes(path: Path) -> Iterator[tuple[str, str]]:
    for _, name in INCLUDE.findall(path.read_text()):
        stage = name.split("/")[0]
        if name.startswith("."):
            yield name, "."
        elif "/" in name and stage in STAGES:
            yield name, stage


def check_stages() -> Iterator[str]:
    for path in cpp_files(ROOT / "src"):
        where = path.relative_to(ROOT)
        stage = where.parts[1]
        if stage not in STAGES:
            yield f"{where}: '{stage}' is not a stage"
            continue
        for name, included in stage_includes(path):
            if included == ".":
                yield f'{where}: includes "{name}"; write the path from src/'
            elif STAGES.index(included) > STAGES.index(stage):
                yield f"{where}: {stage} includes {name}, a later stage"
    listed = re.findall(r"^\s*stage\((\w+)", (ROOT / "CMakeLists.txt").read_text(), re.MULTILINE)
    if listed != STAGES:
        yield f"CMakeLists.txt: stages are {' '.join(listed)}, not {' '.join(STAGES)}"


def check_allowed(folder: str, allowed: set[str]) -> Iterator[str]:
    for path in cpp_files(ROOT / folder):
        for name, stage in stage_includes(path):
            if stage != "." and stage not in allowed:
                yield f"{path.relative_to(ROOT)}: {folder} may not include {name}"


def check_python_headers() -> Iterator[str]:
    for folder in ("src", "include", "bench", "tests", "examples"):
        for path in cpp_files(ROOT / folder):
            for _, name in INCLUDE.findall(path.read_text()):
                if name == "Python.h" or name.startswith("nanobind"):
                    yield f"{path.relative_to(ROOT)}: includes {name}; only python/bindings may"


def module_level_imports(path: Path) -> Iterator[tuple[int, str]]:
    """Absolute names imported when the module is imported; a module of ours as stepscope.x.y."""
    package = path.relative_to(ROOT / "python").with_suffix("").parts[:-1]
    body = list(ast.parse(path.read_text(), str(path)).body)
    while body:
        node = body.pop(0)
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = list(package[: len(package) - node.level + 1]) if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            yield node.lineno, module
            yield from ((node.lineno, f"{module}.{alias.name}") for alias in node.names)
        elif isinstance(node, ast.Try):
            body[:0] = [*node.body, *node.orelse, *node.finalbody]
        elif isinstance(node, ast.If) and "TYPE_CHECKING" not in ast.unparse(node.test):
            body[:0] = [*node.body, *node.orelse]


def module_file(name: str) -> Path | None:
    base = ROOT / "python" / Path(*name.split("."))
    for path in (base.with_suffix(".py"), base / "__init__.py"):
        if path.is_file():
            return path
    return None


def check_import_of_torch() -> Iterator[str]:
    seen: set[Path] = set()
    todo = [ROOT / "python/stepscope/__init__.py"]
    while todo:
        path = todo.pop()
        if path in seen or not path.is_file():
            continue
        seen.add(path)
        for line, name in module_level_imports(path):
            if name.split(".")[0] == "torch":
                yield f"{path.relative_to(ROOT)}:{line}: `import stepscope` would import torch"
            if found := module_file(name):
                todo.append(found)


def check_guest() -> Iterator[str]:
    forbidden = {"threading.Thread", "signal.signal", "os.putenv", "os.environ.setdefault"}
    for path in sorted((ROOT / "python/stepscope").rglob("*.py")):
        where = path.relative_to(ROOT)
        for node in ast.walk(ast.parse(path.read_text(), str(path))):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in forbidden:
                yield f"{where}:{node.lineno}: {ast.unparse(node.func)} in a guest"
            targets = node.targets if isinstance(node, ast.Assign) else []
            if any(ast.unparse(target).startswith("os.environ[") for target in targets):
                yield f"{where}:{node.lineno}: writes os.environ"


def main() -> int:
    faults = [
        *check_stages(),
        *check_allowed("python/bindings", BINDING_STAGES),
        *check_allowed("include", PUBLIC_STAGES),
        *check_python_headers(),
        *check_import_of_torch(),
        *check_guest(),
    ]
    for fault in faults:
        print(fault)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
