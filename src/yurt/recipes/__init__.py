"""Other libraries' work on a context, by `yurt.executor`. A module here needs its library installed."""
