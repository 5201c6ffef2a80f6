"""Hostile surroundings: training goes on, exits with its own code, and what could not be done is
said.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from observing import ROOT, STEPSCOPE, Ran, environment, execute, observe, script


def can_mount() -> bool:
    command = ["unshare", "-m", "mount", "-t", "tmpfs", "none", "/mnt"]
    return (
        shutil.which("unshare") is not None
        and subprocess.run(command, capture_output=True, check=False).returncode == 0
    )


mounts = pytest.mark.skipif(not can_mount(), reason="may not mount: needs root or CAP_SYS_ADMIN")


def in_own_mounts(
    folder: Path, before: str, command: list[str], env: dict[str, str | None] | None = None
) -> Ran:
    """`before` runs in a mount namespace of its own, then the command."""
    return execute(
        folder, ["unshare", "-m", "sh", "-c", before + '\nexec "$@"', "sh", *command], env=env
    )


def run_of(folder: Path, *command: str) -> list[str]:
    return [STEPSCOPE, "run", "--run-dir", str(folder / "run"), "--", *command]


@mounts
def test_shm_of_64_kb_training_goes_on_and_the_lack_of_room_is_said(tmp_path: Path) -> None:
    bare = execute(tmp_path, script("ends.py", "ok"))
    ran = in_own_mounts(
        tmp_path,
        "mount -t tmpfs -o size=64k none /dev/shm",
        run_of(tmp_path, *script("ends.py", "ok")),
    )
    assert ran.finished().stdout == bare.stdout
    assert "/dev/shm" in ran.stderr
    assert ran.stderr.count("not recording") <= 1
    assert ran.summary["steps"]["count"] == 0
    assert ran.summary["verdict"]["code"] == "INSUFFICIENT_DATA"


@mounts
def test_filling_shm_kills_nobody_and_loses_nothing(tmp_path: Path) -> None:
    """The user fills /dev/shm to the last byte while training."""
    ran = in_own_mounts(
        tmp_path,
        "mount -t tmpfs -o size=24m none /dev/shm",
        run_of(tmp_path, *script("fills.py", "/dev/shm")),
    )
    assert ran.finished().measured is not None
    assert ran.measured["full"]
    assert ran.summary["steps"]["count"] == ran.measured["steps"]


@mounts
def test_E07_disk_full_recording_stops_and_training_goes_on(tmp_path: Path) -> None:
    ran = in_own_mounts(
        tmp_path,
        f"mkdir -p {tmp_path}/small && mount -t tmpfs -o size=96k none {tmp_path}/small",
        [
            STEPSCOPE,
            "run",
            "--run-dir",
            f"{tmp_path}/small/run",
            "--",
            *script("fills.py", f"{tmp_path}/small"),
        ],
    )
    assert ran.finished().measured is not None
    assert ran.measured["full"]
    assert ran.stdout == f"trained {ran.measured['steps']} steps\n"
    assert "Traceback" not in ran.stderr
    assert "small" in ran.stderr or "no space" in ran.stderr.lower()


@mounts
def test_E04_no_passwd_entry_no_home_read_only_folder_full_tmp(tmp_path: Path) -> None:
    # The checkout itself may lie below /tmp.
    before = f"""
mount -t tmpfs none /mnt && mkdir /mnt/here /mnt/checkout && mount --bind {ROOT} /mnt/checkout
mount -o remount,ro /mnt
mount -t tmpfs -o size=16k none /tmp
[ -d {ROOT} ] || {{ mkdir -p {ROOT} && mount --bind /mnt/checkout {ROOT}; }}
dd if=/dev/zero of=/tmp/full bs=1k 2>/dev/null
cd /mnt/here
"""
    as_nobody_known = [
        "unshare",
        "-U",
        "--map-user=54321",
        "env",
        "-u",
        "HOME",
        "-u",
        "USER",
        "-u",
        "LOGNAME",
    ]
    command = [*as_nobody_known, STEPSCOPE, "run", "--", *script("ends.py", "ok")]
    ran = in_own_mounts(tmp_path, before, command)
    ran.finished()
    assert ran.stdout.count("step ") == 4
    places = [word.strip("'\"(),") for word in ran.stderr.split() if word.startswith("/dev/shm/")]
    assert places, ran.stderr
    folders = {Path(place) if Path(place).is_dir() else Path(place).parent for place in places}
    found = [folder for folder in folders if (folder / "summary.json").exists()]
    assert found, ran.stderr
    assert json.loads((found[0] / "summary.json").read_text())["steps"]["count"] == 4
    shutil.rmtree(found[0])


@mounts
def test_E06_hidden_proc_is_said_and_harms_nothing(tmp_path: Path) -> None:
    """Other processes and machine-wide files of /proc are out of sight; what is the process's own
    stays.
    """
    before = """
for file in stat meminfo diskstats net/dev loadavg; do
  [ -e /proc/$file ] && mount --bind /dev/null /proc/$file
done
true
"""
    ran = in_own_mounts(tmp_path, before, run_of(tmp_path, *script("phases.py", "--input", "30")))
    summary = ran.finished().summary
    assert summary["steps"]["count"] == 60
    machine = summary["resources"]["cpu_machine"]
    assert (machine["measured"], machine["average"]) == (False, None)
    assert machine["note"]


JUMPS = """
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
/* The wall clock of this process and its children jumps back and forth by an hour, every 300 ms. */
static int raw(clockid_t id, struct timespec *t) { return (int)syscall(SYS_clock_gettime, id, t); }
int clock_gettime(clockid_t id, struct timespec *t) {
  int r = raw(id, t);
  if (r == 0 && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE)) {
    struct timespec m;
    raw(CLOCK_MONOTONIC, &m);
    if ((m.tv_sec * 1000 + m.tv_nsec / 1000000) / 300 % 2) t->tv_sec -= 3600;
  }
  return r;
}
time_t time(time_t *out) {
  struct timespec t;
  clock_gettime(CLOCK_REALTIME, &t);
  if (out) *out = t.tv_sec;
  return t.tv_sec;
}
int gettimeofday(struct timeval *restrict tv, void *restrict zone) {
  struct timespec t;
  (void)zone;
  clock_gettime(CLOCK_REALTIME, &t);
  tv->tv_sec = t.tv_sec;
  tv->tv_usec = t.tv_nsec / 1000;
  return 0;
}
"""


def test_E08_a_wall_clock_that_jumps_changes_no_figure(tmp_path: Path) -> None:
    from observing import check_summary

    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler")
    (tmp_path / "jumps.c").write_text(JUMPS)
    subprocess.run(
        [
            compiler,
            "-O1",
            "-shared",
            "-fPIC",
            "-o",
            str(tmp_path / "jumps.so"),
            str(tmp_path / "jumps.c"),
        ],
        check=True,
    )
    begin = time.monotonic()
    ran = observe(
        tmp_path,
        script("phases.py", "--input", "8", "--forward", "8"),
        env={"LD_PRELOAD": str(tmp_path / "jumps.so")},
    )
    took = time.monotonic() - begin
    assert ran.finished().measured is not None
    check_summary(ran.summary, ran.measured["steps"])
    measured_s = (ran.measured["steps"][-1]["end"] - ran.measured["steps"][0]["begin"]) / 1e9
    assert measured_s <= ran.summary["run"]["duration_s"] <= took


@pytest.mark.fast
def test_E01_sigterm_to_the_whole_process_group(tmp_path: Path) -> None:
    process = subprocess.Popen(
        run_of(tmp_path, *script("ends.py", "wait", 30)),
        cwd=tmp_path,
        env=environment(tmp_path),
        text=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    assert process.stdout is not None
    line = ""
    while "waiting" not in line:
        line = process.stdout.readline()
        assert line, process.communicate()[1]
    os.killpg(process.pid, signal.SIGTERM)
    process.communicate(timeout=30)
    assert process.returncode == 128 + signal.SIGTERM
    shown = subprocess.run(
        [STEPSCOPE, "show", str(tmp_path / "run"), "--json"],
        capture_output=True,
        text=True,
        check=True,
        env=environment(tmp_path),
    )
    assert json.loads(shown.stdout)["steps"]["count"] == 30


@pytest.fixture
def shm_names() -> Iterator[None]:
    folder = Path(f"/dev/shm/stepscope-{os.getuid()}")
    before = set(os.listdir(folder)) if folder.exists() else set()
    yield
    assert folder.exists() is False or set(os.listdir(folder)) <= before


@pytest.mark.skipif(os.geteuid() != 0 or not can_mount(), reason="needs root for namespaces")
def test_R14_equal_pids_and_a_host_name_that_does_not_resolve(tmp_path: Path) -> None:
    """Two ranks, each process 1 of its own namespace, on a host whose name nobody knows."""
    start = """
hostname no-such-host.invalid
for rank in 0 1; do
  RANK=$rank LOCAL_RANK=$rank WORLD_SIZE=2 unshare -p --fork "$@" &
done
wait
"""
    inner = [*script("ends.py", "ok", 12)]
    command = run_of(tmp_path, "sh", "-c", start, "sh", *inner)
    ran = execute(tmp_path, ["unshare", "--uts", *command])
    summary = ran.finished().summary
    assert [rank["rank"] for rank in summary["ranks"]] == [0, 1]
    assert [rank["steps"] for rank in summary["ranks"]] == [12, 12]
    assert summary["ranks"][0]["node"] == "no-such-host.invalid"


def test_E09_two_runs_at_once_take_two_folders(tmp_path: Path) -> None:
    command = [STEPSCOPE, "run", "--name", "same", sys.executable, "-c", "pass"]
    both = [
        subprocess.Popen(
            command, cwd=tmp_path, env=environment(tmp_path), stderr=subprocess.PIPE, text=True
        )
        for _ in range(4)
    ]
    for process in both:
        process.communicate(timeout=60)
        assert process.returncode == 0
    assert {path.name for path in (tmp_path / "stepscope-runs").iterdir()} == {
        "same",
        "same-2",
        "same-3",
        "same-4",
    }
