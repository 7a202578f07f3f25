"""Counts to twelve, half a second a step, over as many starts as it takes."""

import time

import yurt

with yurt.checkpointing() as saved:
    step = int(saved.load("step") or 0)  # what the start before this one saved
    while step < 12:
        time.sleep(0.5)  # a step of your training
        step += 1
        print("step", step, flush=True)
        yurt.log(step=step, loss=1 / step)
        if saved.wanted:  # the time is nearly over
            saved.save("step", str(step).encode())  # whole or not at all
            saved.leave()  # to be started again
