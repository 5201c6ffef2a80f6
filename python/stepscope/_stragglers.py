"""The simple rule that people ask for by name; Stepscope's own findings use the sync points
instead.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, cast


def identify_stragglers(
    batch_times: Mapping[int, float | Sequence[float]] | Sequence[float | Sequence[float]],
    threshold_multiplier: float = 2.0,
    method: str = "mean",
    window: int | None = None,
) -> list[int]:
    """Ranks whose batch time exceeds `threshold_multiplier` times the typical one.

    batch_times: seconds (any unit, the same for all), one number a rank, or one series a rank; a
    mapping from rank, or a sequence indexed by rank. With series, the same rule on the moving
    average (method "mean") or moving median ("median") over the last `window` values (None: the
    whole series). threshold_multiplier: positive. method: "mean" of all ranks, the slow one
    included, or "median" of the others.

    Returns the ranks in ascending order; an empty input gives an empty list. Raises ValueError for
    what is no number, NaN, infinite or negative times, a rank without values, an unknown method, a
    multiplier that is not positive or a window under 1.

    The mean rule cannot fire for 2 ranks at 2.0: the mean moves with the culprit (a rank at t of
    two has the mean at least t / 2). For small groups use method="median", which takes the median
    of the others.
    """
    from stepscope import _native

    pairs = batch_times.items() if isinstance(batch_times, Mapping) else enumerate(batch_times)
    ranks: dict[int, list[float]] = {int(rank): _series(rank, times) for rank, times in pairs}
    if not math.isfinite(threshold_multiplier):
        raise ValueError(
            f"threshold_multiplier must be a finite number, not {threshold_multiplier}"
        )
    return _native.identify_stragglers(ranks, float(threshold_multiplier), method, window)


def _series(rank: object, times: Any) -> list[float]:
    if hasattr(times, "tolist"):
        times = times.tolist()
    several = isinstance(times, Sequence) and not isinstance(times, (str, bytes))
    values: list[Any] = list(cast(Any, times)) if several else [times]
    for value in values:
        if not isinstance(value, (int, float)):
            raise ValueError(f"rank {rank}: times must be numbers, not {value!r}")
    return [float(value) for value in values]
