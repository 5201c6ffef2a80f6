"""profiler: torch.profiler's own work, and which steps lie in its windows (they are never averaged
in).
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

from stepscope import _native


def install(module: ModuleType) -> None:
    profile: Any = module.profile
    hook = _native.Hook
    phase = _native.PHASE_PROFILER
    profile._prepare_trace = _native.timed_call(profile._prepare_trace, hook.SPAN, phase)
    profile._start_trace = _native.timed_call(profile._start_trace, hook.PROFILER_OPEN)
    profile.__exit__ = _native.timed_call(profile.__exit__, hook.PROFILER_CLOSE)
    profile.export_chrome_trace = _native.timed_call(profile.export_chrome_trace, hook.SPAN, phase)
