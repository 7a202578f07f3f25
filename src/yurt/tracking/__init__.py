"""Curves of runs on this machine: their files as they grow, and what TensorBoard, MLflow and W&B make of them."""
