"""Count to twelve, half a second per step, over as many starts as needed."""

import time

import yurt

with yurt.checkpointing() as saved:
    step = int(saved.load("step") or 0)  # the step that the previous start saved
    while step < 12:
        time.sleep(0.5)  # one step of your training
        step += 1
        print("step", step, flush=True)
        yurt.log(step=step, loss=1 / step)
        if saved.wanted:  # the time limit is near
            saved.save("step", str(step).encode())  # atomic
            saved.leave()  # exit; yurt starts the run again
