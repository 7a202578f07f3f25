"""The checks of `yurt doctor`: this machine, and the site of each context. Only `fixes` changes anything."""
