"""Runs the work of other libraries on a context through `yurt.executor`. Each module needs its library installed."""
