"""The Python API: `yurt.executor`, `yurt.run` and `yurt.runs`. `yurt` imports these modules on first use."""
