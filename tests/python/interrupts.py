"""What others can do while a call works. LONG_CALLS would last for minutes; each is given `normscope` and `np` in an empty directory."""
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time

MODEL = ("normscope.train.lm(corpus='grammar', tokenizer='bytes', tokens=20000, context=256, batch=1, steps=1, dimension=64, layers=4, "
         "heads=4, out='lm')\nmodel = 'lm/models/layernorm-seed11'\nopen('text', 'w').write('Once upon a time there was a norm. ' * 20000)\n")
LONG_CALLS = {
    "decide_keys": "normscope.decide_keys(np.random.randn(64, 3000, 16), prefix=True)",
    "keys": "normscope.keys(np.random.randn(64, 3000, 16), exact=True)",
    "vocab": "normscope.vocab(np.random.randn(30000, 24), exact=True)",
    "heatmap": "normscope.heatmap(n='300:400', d='30:60', draws=10000)",
    "mask": "normscope.mask('random:0.001', 100000)",
    "collapse": "normscope.collapse(tokens=512, dim=256, layers=1000, samples=100)",
    "equilibria": "normscope.equilibria(starts=100000000, steps=100000)",
    "train.majority": "normscope.train.majority(steps=1000000)",
    "train.lm": "normscope.train.lm(corpus='grammar', tokenizer='bytes', steps=1000000)",
    "train.sentiment": "normscope.train.sentiment(corpus='grammar', tokenizer='words', steps=1000000)",
    "paper": "normscope.paper(only='fig1ab')",
    "scan": "normscope.scan(model, text='text', window=256, samples=1000)",
    "ablate": "normscope.ablate(model, text='text', norm=['none', 'center'], window=256, samples=100000)",
}


def threads_of(process):
    try:
        return set(os.listdir(f"/proc/{process}/task"))
    except FileNotFoundError:
        return set()


def interrupted(call, wait=0.0):
    """(what the call ended with: stopped, or that it had ended; seconds from the signal to the exception). The signal comes as soon as the
    call's work has begun in a thread of its own, however fast or slow the machine is, or `wait` seconds later."""
    program = ("import os, sys, numpy as np, normscope\n" + (MODEL if "model" in call else "") + "print('ready', flush=True)\n"
               f"sys.stdin.readline()\ntry:\n    {call}\nexcept KeyboardInterrupt:\n    print('stopped', flush=True)\n    os._exit(0)\n"
               "print('ended')\n")
    with tempfile.TemporaryDirectory() as home, subprocess.Popen(
            [sys.executable, "-c", program], cwd=home, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}) as child:
        assert child.stdout.readline().strip() == "ready"
        before = threads_of(child.pid)
        child.stdin.write("\n")
        child.stdin.flush()
        while child.poll() is None and threads_of(child.pid) <= before:
            time.sleep(0.001)
        time.sleep(wait)
        start = time.monotonic()
        child.send_signal(signal.SIGINT)
        said = child.stdout.readline().strip()
        passed = time.monotonic() - start
    return said, passed


def ticks_during(call_of):
    """How often another thread came to its turn, with a pause each time, during one call, call_of(size)(): of the first size at which that is
    more than 5 times. A call that keeps the interpreter to itself lets it go on at its beginning and end only, whatever its size."""
    size, ticks = 1, 0
    while ticks <= 5 and size <= 256:
        call, count, ended = call_of(size), [0], threading.Event()

        def tick():
            while not ended.wait(0.001):
                count[0] += 1

        thread = threading.Thread(target=tick)
        thread.start()
        call()
        ticks = count[0]
        ended.set()
        thread.join()
        size *= 4
    return ticks
