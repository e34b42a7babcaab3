"""highs.py KEYS.npy chebyshev|membership INDEX,INDEX,… PASSES LEAST_RADIUS BOX

Decides the keys of the given indices with SciPy's HiGHS, one LP per key, PASSES times over, and prints JSON:
which are selectable, and CPU and wall seconds of each pass. Only the calls of linprog are timed.
"""
import json
import sys
import time

try:
    import numpy
    import scipy
    from scipy.optimize import linprog
except ImportError as error:
    print(json.dumps({"absent": f"not installed ({error}; python3-scipy)"}))
    sys.exit(0)


def timed(spent, *arguments, **options):
    cpu, wall = time.thread_time(), time.perf_counter()
    result = linprog(*arguments, method="highs", **options)
    spent[0] += time.thread_time() - cpu
    spent[1] += time.perf_counter() - wall
    return result


def chebyshev(keys, i, least_radius, box, spent):
    """max r s.t. (k_j − k_i)·x + ‖k_j − k_i‖ r ≤ 0, |x| ≤ box, r ≥ 0. None if HiGHS does not solve it."""
    differences = numpy.delete(keys, i, axis=0) - keys[i]
    rows = numpy.column_stack([differences, numpy.linalg.norm(differences, axis=1)])
    objective = numpy.zeros(keys.shape[1] + 1)
    objective[-1] = -1
    bounds = [(-box, box)] * keys.shape[1] + [(0, None)]
    result = timed(spent, objective, A_ub=rows, b_ub=numpy.zeros(len(rows)), bounds=bounds)
    return bool(result.x[-1] > least_radius) if result.status == 0 else None


def membership(keys, i, least_radius, box, spent):
    """λ ≥ 0, Σ λ_j = 1, Σ λ_j (k_j − k_i) = 0: infeasible if and only if the key is selectable."""
    differences = numpy.delete(keys, i, axis=0) - keys[i]
    rows = numpy.vstack([differences.T, numpy.ones(len(differences))])
    target = numpy.zeros(keys.shape[1] + 1)
    target[-1] = 1
    result = timed(spent, numpy.zeros(len(differences)), A_eq=rows, b_eq=target, bounds=(0, None))
    return {0: False, 2: True}.get(result.status)


def main():
    path, program, indices, passes, least_radius, box = sys.argv[1:]
    keys = numpy.load(path)
    indices = [int(index) for index in indices.split(",")]
    decide = {"chebyshev": chebyshev, "membership": membership}[program]
    decide(keys, indices[0], float(least_radius), float(box), [0.0, 0.0])
    times = []
    for _ in range(int(passes)):
        spent = [0.0, 0.0]
        selectable = [decide(keys, i, float(least_radius), float(box), spent) for i in indices]
        times.append({"cpu": spent[0], "wall": spent[1]})
    answer = {"scipy": scipy.__version__, "passes": times}
    if None in selectable:
        answer["absent"] = f"HiGHS gave up on {selectable.count(None)} keys"
    else:
        answer["selectable"] = selectable
    print(json.dumps(answer))


main()
