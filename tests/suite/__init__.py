"""pytest plugins of the suite: its environment, the order of tests on workers, its output."""
