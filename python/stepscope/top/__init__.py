"""The terminal view: `stepscope top`. Formats what the API answers (docs/reference/api.md); computes nothing.

client -> poll -> state -> panels -> app. Needs textual (`pip install 'stepscope[top]'`); nothing else of the package
imports it, and no training process ever does.
"""
