"""What tests of yurt, and of its plugins, stand on: a lab as a pytest fixture."""
