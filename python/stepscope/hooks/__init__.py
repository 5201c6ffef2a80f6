"""Where each thing is measured. One file a hook; each has install(module), called once that module
is imported.

What runs on the step path is C (stepscope._native); Python here runs once, or a few times an epoch.
Where Dynamo may trace what is patched, the patch is a Python function whose first line asks
torch.compiler.is_compiling(): a traced call then has nothing of ours in its graph (`trials.md` A,
F).
"""
