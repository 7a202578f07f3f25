"""The Python API: `yurt.executor`, `yurt.run`, `yurt.runs` and `yurt.get`. `yurt` imports them on first use."""
