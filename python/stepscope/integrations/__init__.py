"""One file a framework or tracker; each imports its own, and only when it is imported itself."""
