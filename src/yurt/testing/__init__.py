"""Support for tests of yurt and its plugins: fixtures, contract suites, and a backend of pods."""
