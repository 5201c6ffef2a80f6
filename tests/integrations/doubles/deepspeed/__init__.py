"""A double of DeepSpeed by its public interface, for where the package is not installed: an engine
that wraps a module, accumulates, clips, and skips the steps whose gradients overflowed.
"""

__version__ = "0.double"
