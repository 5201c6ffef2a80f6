"""The terminal view: `stepscope top`. Formats what the API answers (docs/reference/api.md).

client -> poll -> state -> panels, ranks, pages -> layout -> app. It computes nothing. Needs textual
(`pip install 'stepscope[top]'`); nothing else of the package imports it, and no training process
ever does.
"""
