"""extremal_rays.py KEYS.npy PASSES

Finds all selectable keys of a set with extremalrays (PyPI): those whose rows (1, k) are extremal rays of the cone of
all. PASSES times over; prints JSON: their indices, and CPU and wall seconds of each pass.
"""
import json
import sys
import time

try:
    import extremalrays
    import numpy
    from importlib.metadata import version
except ImportError as error:
    print(json.dumps({"absent": f"not installed ({error}; make bench fetches it from PyPI)"}))
    sys.exit(0)


def main():
    path, passes = sys.argv[1:]
    keys = numpy.load(path)
    rays = numpy.column_stack([numpy.ones(len(keys)), keys])
    slice_ = numpy.zeros(rays.shape[1])
    slice_[0] = 1  # on which all rays are 1
    times = []
    for _ in range(int(passes)):
        cpu, wall = time.thread_time(), time.perf_counter()
        found = extremalrays.exhaustive(rays, w=slice_)
        times.append({"cpu": time.thread_time() - cpu, "wall": time.perf_counter() - wall})
    print(json.dumps({"version": version("extremalrays"), "passes": times, "vertices": [int(i) for i in found]}))


main()
