"""TensorBoard on this machine over the copies of event files: `yurt tensorboard`."""
