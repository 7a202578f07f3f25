"""What tests of yurt and of its plugins stand on: fixtures, contract suites, a backend of pods."""
