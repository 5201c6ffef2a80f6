"""stepscope top in a terminal (tmux): over a real training run, through its agent's death and its
end; of an ended run; and without a terminal.
"""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from cli.commands import agent_of, is_gone, kill, only_run, start, stepscope
from cli.commands import wait_for as wait
from observing import STEPSCOPE, environment

TRAIN = Path(__file__).parent / "train.py"


class Terminal:
    """A window of its own tmux server, whose shell runs one command and then says its exit code."""

    def __init__(self, folder: Path, command: str, width: int = 80, height: int = 24) -> None:
        self.server = f"stepscope-{uuid.uuid4().hex[:12]}"
        env = environment(folder, {"LANG": "C.UTF-8", "LC_ALL": "C.UTF-8", "TMUX": None})
        self.tmux(
            *("-f", "/dev/null", "new-session", "-d", "-x", str(width), "-y", str(height)),
            f"{command}; echo exit code=$?; exec sleep 300",
            cwd=folder, env=env,
        )  # fmt: skip

    def tmux(self, *words: str, **more: object) -> str:
        done = subprocess.run(
            ["tmux", "-L", self.server, *words], capture_output=True, text=True, check=True, **more
        )  # type: ignore[call-overload]
        return done.stdout

    def screen(self) -> str:
        return self.tmux("capture-pane", "-p")

    def press(self, *keys: str) -> None:
        self.tmux("send-keys", *keys)

    def until(self, what: str | Callable[[str], object]) -> str:
        def seen() -> str:
            screen = self.screen()
            found = what in screen if isinstance(what, str) else what(screen)
            return screen if found else ""

        try:
            return wait(seen, str(what))
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.screen()}") from None

    def close(self) -> None:
        with contextlib.suppress(subprocess.CalledProcessError):
            self.tmux("kill-server")


@contextlib.contextmanager
def terminal(folder: Path, command: str, width: int = 80, height: int = 24) -> Iterator[Terminal]:
    opened = Terminal(folder, command, width, height)
    try:
        yield opened
    finally:
        opened.close()


def step_in(screen: str) -> int:
    found = re.search(r"step ([\d,]+)", screen)
    return int(found[1].replace(",", "")) if found else -1


def test_a_live_run_to_its_end(tmp_path: Path) -> None:
    run = start(tmp_path, "run", sys.executable, str(TRAIN))
    try:
        runs = tmp_path / "stepscope-runs"
        wait(lambda: runs.is_dir() and list(runs.iterdir()), "the run's folder")
        folder = only_run(tmp_path)
        with terminal(tmp_path, f"{STEPSCOPE} top") as top:
            first = step_in(top.until(lambda screen: step_in(screen) > 30))
            screen = top.until(lambda screen: step_in(screen) > first + 50)
            assert "forward" in screen
            assert "live" in screen
            assert "! " not in screen
            row = next(line.split() for line in screen.splitlines() if line.split()[:1] == ["0"])
            assert float(row[2]) > 9  # TOTAL, of sleeps of 9 ms
            (helper,) = children(view_of(folder))

            top.press("?")
            top.until("KEYS")
            top.press("Escape")

            kill(agent_of(folder))  # the supervisor starts another
            before = step_in(top.until("live"))
            top.until(lambda screen: step_in(screen) > before + 50 and "live" in screen)

            run.terminate()
            run.communicate()
            screen = top.until("ended")
            assert step_in(screen) >= before
            top.press("q")
            top.until("exit code=0")
            wait(lambda: is_gone(helper), "the end of the process that answered")
        with terminal(tmp_path, f"{STEPSCOPE} top {folder.name}", 160, 45) as top:
            top.until(lambda screen: "ended, exit code" in screen and "STEP TIME" in screen)
    finally:
        run.terminate()
        run.communicate()


def view_of(run: Path) -> int:
    """The Python process of the only view of this test."""
    mine = []
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            words = (entry / "cmdline").read_bytes().split(b"\0")
            if b"--socket" in words and os.readlink(entry / "cwd") == str(run.parent.parent):
                mine.append(int(entry.name))
    assert len(mine) == 1, mine
    return mine[0]


def children(pid: int) -> list[int]:
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            fields = (entry / "stat").read_text().rsplit(")", 1)[1].split()
            if int(fields[1]) == pid:
                found.append(int(entry.name))
    return found


@pytest.mark.fast
def test_a_url(tmp_path: Path) -> None:
    """Of a server of runs: on a terminal, without one, and without its token."""
    for name in ("first", "second"):
        place = f"stepscope-runs/{name}"
        made = stepscope(tmp_path, "simulate", "--steps", "60", "--run-dir", place, "--quiet")
        assert made.code == 0, made.stderr
    server = start(tmp_path, "serve")
    try:
        assert server.stderr is not None
        url = re.search(r"http://\S+\?token=\S+", server.stderr.readline())
        assert url
        said = stepscope(tmp_path, "top", url[0])
        assert (said.code, said.stderr) == (0, "")
        assert said.stdout == stepscope(tmp_path, "status", "second").stdout
        refused = stepscope(tmp_path, "top", url[0].partition("?")[0])
        assert refused.code == 2
        assert "token" in refused.stderr
        (tmp_path / "token").write_text(url[0].partition("token=")[2] + "\n")
        with terminal(
            tmp_path, f"{STEPSCOPE} top {url[0].partition('?')[0]} --token-file token"
        ) as top:
            top.until("ended, exit code 0")
            top.press("q")
            top.until("exit code=0")
    finally:
        server.terminate()
        server.communicate()


@pytest.mark.fast
def test_without_a_terminal_it_is_the_status(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    made = stepscope(tmp_path, "simulate", "--steps", "60", "--run-dir", str(folder), "--quiet")
    assert made.code == 0, made.stderr
    top, status = (stepscope(tmp_path, one, str(folder)) for one in ("top", "status"))
    assert (top.code, top.stdout, top.stderr) == (0, status.stdout, "")


@pytest.mark.fast
@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["nowhere"], "there is no run nowhere"),
        (["http://"], "is not http://HOST:PORT"),
        (["http://127.0.0.1:1/?token=x"], "http://127.0.0.1:1 does not answer"),
        (["http://127.0.0.1:1/a/b"], "is no run's place on a server"),
        (["http://127.0.0.1:1", "--token-file", "none"], "No such file"),
        (["--layout", "tall"], "--layout"),
    ],
)
def test_wrong_use(tmp_path: Path, arguments: list[str], says: str) -> None:
    done = stepscope(tmp_path, "top", *arguments)
    assert done.code == 2
    assert says in done.stderr
    assert "hint:" in done.stderr or "see:" in done.stderr
    assert done.stdout == ""
    assert "Traceback" not in done.stderr


@pytest.mark.fast
def test_without_textual_it_says_what_to_install(tmp_path: Path) -> None:
    """A sitecustomize that hides textual, in a folder of PYTHONPATH, stands for its absence."""
    made = stepscope(tmp_path, "simulate", "--steps", "60", "--run-dir", "run", "--quiet")
    assert made.code == 0, made.stderr
    hide = tmp_path / "hide"
    hide.mkdir()
    (hide / "sitecustomize.py").write_text("import sys\nsys.modules['textual'] = None\n")
    (tmp_path / "textual.py").write_text("raise SystemExit('of the current folder')\n")
    with terminal(tmp_path, f"env PYTHONPATH={hide} {STEPSCOPE} top run", 160) as top:
        screen = top.until("exit code=2")
        assert "stepscope: top needs the package textual" in screen
        assert "pip install 'stepscope[top]'" in screen
