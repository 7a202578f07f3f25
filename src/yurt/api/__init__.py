"""yurt from Python: `yurt.executor`, `yurt.run`, `yurt.runs`. Imported when one of them is asked for."""
