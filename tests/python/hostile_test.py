"""Whatever is given, a sentence and never a crash; Ctrl-C, threads, forks, and memory that does not grow."""
import array
import os
import pathlib
import signal
import subprocess
import sys
import threading
import unittest

import numpy as np

import interrupts
import normscope

SQUARE = np.array([[1, 1], [1, -1], [-1, 1], [-1, -1], [0, 0]], dtype=np.float64)


class Elsewhere:
    """A tensor of a graphics card, as PyTorch shows it."""

    class device:
        type = "cuda"

        def __str__(self):
            return "cuda:0"

    device = device()

    def __dlpack_device__(self):
        return (2, 0)

    def __dlpack__(self, stream=None):
        raise AssertionError("nobody may ask for it")

    def __array__(self, dtype=None):
        raise AssertionError("nobody may ask for it")


class OnlyInterface:
    __cuda_array_interface__ = {"shape": (2, 2)}


class DlpackElsewhere:
    def __dlpack_device__(self):
        return (2, 0)

    def __dlpack__(self, stream=None):
        raise AssertionError("nobody may ask for it")


class Raises:
    def __array__(self, dtype=None):
        raise ZeroDivisionError("mine")


class Hostile(unittest.TestCase):
    def both(self, value, **options):
        """The same through keys and decide_keys; verdicts, or the exception of both."""
        found = []
        for ask in (lambda: normscope.decide_keys(value, **options).verdict.tolist(),
                    lambda: [key.verdict for key in normscope.keys(value, **options).sets[0].keys]):
            try:
                found.append(ask())
            except Exception as error:  # noqa: BLE001
                found.append(type(error))
        self.assertEqual(*found)
        return found[0]

    def test_every_dtype_and_layout(self):
        expected = ["selectable"] * 4 + ["unselectable"]
        readonly = SQUARE.copy()
        readonly.flags.writeable = False
        wide = np.zeros((10, 6))
        wide[::2, ::3] = SQUARE
        for value in (SQUARE.astype(np.float16), SQUARE.astype(np.float32), SQUARE.astype(np.int8), SQUARE.astype(">f8"),
                      np.asfortranarray(SQUARE), readonly, wide[::2, ::3], SQUARE[:, ::-1], SQUARE.tolist(),
                      memoryview(SQUARE), np.ma.array(SQUARE),
                      np.broadcast_to(SQUARE, (1, 5, 2))[0], np.frombuffer(SQUARE.tobytes()).reshape(5, 2)):
            self.assertEqual(self.both(value), expected, repr(value)[:60])
        buffer = array.array("f", SQUARE.ravel())
        self.assertEqual(self.both(np.frombuffer(buffer, np.float32).reshape(5, 2)), expected)

    def test_float64_is_viewed_where_it_lies(self):
        large = np.random.default_rng(0).standard_normal((20, 3))
        before = large.copy()
        normscope.decide_keys(large)
        normscope.keys(large, norm="layernorm")
        np.testing.assert_array_equal(large, before)  # and not written to

    def test_what_is_no_matrix_of_numbers(self):
        for value in (None, 1, 1.5, "x", b"xx", object(), {}, {1: 2}, set(), [], [[]], [[], []], [["a"]], [[None]], [[1j]],
                      np.array([object()]), np.array([["a"]]), np.zeros((0, 3)), np.zeros((3, 0)), np.zeros(3),
                      np.zeros((1, 1, 1, 1, 1)), np.zeros((2, 2), "M8[s]"), np.zeros(3, [("a", "f8")]), [[1, 2], [3]],
                      np.full((2, 2), np.nan), np.full((2, 2), np.inf), np.array([[2 ** 60, 1]]), Raises(), lambda: 0, type,
                      np.ma.array(SQUARE, mask=True), SQUARE.astype(np.longdouble), iter([[1, 2]])):
            for ask in (normscope.decide_keys, normscope.keys, normscope.norm, normscope.vocab):
                if value is None and ask is not normscope.norm:
                    continue
                if ask is normscope.norm and isinstance(value, (int, float, np.ndarray, list)):
                    continue
                with self.assertRaises(Exception, msg=f"{ask.__name__} {value!r}"[:80]):
                    ask(value)

    def test_other_devices_are_refused_with_what_to_do(self):
        for value in (Elsewhere(), OnlyInterface(), DlpackElsewhere()):
            for ask in (normscope.decide_keys, normscope.keys, normscope.norm, normscope.mask):
                with self.assertRaisesRegex(ValueError, r"another device.*give (keys|array|x)\.cpu\(\) instead"):
                    ask(value)

    def test_lengths_that_do_not_fit(self):
        for call in (lambda: normscope.decide_keys(SQUARE, [1, 2]), lambda: normscope.keys(SQUARE, bias=np.zeros((5, 5, 5))),
                     lambda: normscope.norm(SQUARE, gain=[1]), lambda: normscope.norm(SQUARE, bias=np.zeros((2, 2))),
                     lambda: normscope.vocab(SQUARE, bias=[1]), lambda: normscope.keys(SQUARE, heads=3),
                     lambda: normscope.decide_keys(SQUARE, errors=[1])):
            with self.assertRaises(ValueError):
                call()

    def test_files_that_are_closed_or_no_text(self):
        class Closed:
            def read(self):
                raise ValueError("I/O operation on closed file.")

        class Numbers:
            def read(self):
                return 7

        with open(os.devnull, encoding="utf-8") as closed, open(os.devnull, "w", encoding="utf-8") as written:
            pass
        for value in (Closed(), Numbers(), closed, written):
            with self.assertRaises((ValueError, TypeError)):
                normscope.scan("nowhere", text=value)

    def test_an_interrupt_ends_every_call(self):
        """How soon is told by bench/python/overhead.py."""
        for name, call in interrupts.LONG_CALLS.items():
            with self.subTest(name):
                self.assertEqual(interrupts.interrupted(call)[0], "stopped", call)

    def test_the_interpreter_goes_on_meanwhile(self):
        ticks = interrupts.ticks_during(lambda size: lambda: normscope.heatmap(n=[40], d=[8], draws=500 * size, threads=1))
        self.assertGreater(ticks, 5)

    def test_threads_ask_at_once(self):
        expected = normscope.keys(SQUARE).sets[0].counts.to_dict()
        wrong = []

        def ask():
            for _ in range(20):
                if normscope.keys(SQUARE, threads=2).sets[0].counts.to_dict() != expected:
                    wrong.append(1)
                if normscope.decide_keys(SQUARE).counts["selectable"] != 4:
                    wrong.append(2)

        threads = [threading.Thread(target=ask) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])

    def test_a_fork_can_ask_again(self):
        normscope.heatmap(n=[20], d=[4], draws=20, threads=2)
        child = os.fork()
        if child == 0:
            code = 1
            try:
                signal.alarm(60)
                code = 0 if normscope.keys(SQUARE, threads=2).sets[0].counts.selectable == 4 else 2
            finally:
                os._exit(code)
        _, status = os.waitpid(child, 0)
        self.assertEqual(os.waitstatus_to_exitcode(status), 0)

    def test_a_fork_during_a_call_of_another_thread(self):
        other = threading.Thread(target=lambda: normscope.heatmap(n=[60], d=[8], draws=200, threads=2))
        other.start()
        child = os.fork()
        if child == 0:
            code = 1
            try:
                signal.alarm(60)
                code = 0 if normscope.keys(SQUARE, threads=2).sets[0].counts.selectable == 4 else 2
                normscope._core._wait_for_abandoned_work()  # as at its end: of the parent's call there is nothing to wait for
            finally:
                os._exit(code)
        _, status = os.waitpid(child, 0)
        other.join()
        self.assertEqual(os.waitstatus_to_exitcode(status), 0)

    def test_a_child_leaves_the_files_of_its_parents_results(self):
        result = normscope.train.majority(steps=1, samples=100, classes=3, length=4, margin=1)
        kept = pathlib.Path(result._answer.directory)
        child = os.fork()
        if child == 0:
            signal.alarm(60)
            del result
            os._exit(0)
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        for name in ("results.json", ".normscope-lock"):
            self.assertTrue((kept / name).exists(), name)
        del result
        self.assertFalse(kept.exists())

    def test_the_interpreter_may_end_during_a_call_of_a_daemon_thread(self):
        program = ("import threading, time, normscope\n"
                   "threading.Thread(target=lambda: [normscope.heatmap(n=[60], d=[8], draws=100, threads=1) for _ in range(1000)], daemon=True).start()\n"
                   "time.sleep(0.3)\n")
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120,
                              env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_nothing_to_measure(self):
        for value in (np.zeros((0, 3)), np.zeros((3, 0)), None):
            with self.assertRaises(ValueError):
                normscope._core.token_measures(value)

    def test_results_are_read_by_many_threads_at_once(self):
        result, seen = normscope.heatmap(n="3:9", d=[2, 3], draws=5), []

        def read():
            seen.append((result.to_json(), result.cells[3].n, len(result.table(library="none")), result._repr_html_()))

        threads = [threading.Thread(target=read) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(len(seen), 8)
        self.assertEqual(len(set(seen)), 1)

    def test_memory_does_not_grow(self):
        def resident():
            with open("/proc/self/statm", encoding="ascii") as file:
                return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

        generator = np.random.default_rng(0)
        kinds = (np.float16, np.float32, np.float64)
        count, sizes = 100_000, []
        for i in range(count):
            keys = generator.standard_normal(tuple(generator.integers(1, (12, 5)))).astype(kinds[i % 3])
            normscope.decide_keys(keys, threads=1)
            if i % 10 == 0:
                normscope.keys(keys, threads=1).sets
            if i % 10 == 5:
                with self.assertRaises(ValueError):
                    normscope.keys(keys[:, :0], threads=1)
            if i in (count // 2, count - 1):
                sizes.append(resident())
        self.assertLess(sizes[1] - sizes[0], 4 << 20)

    def test_what_is_costly_is_imported_when_it_is_used(self):
        code = ("import sys, normscope; print(*sorted({name.partition('.')[0] for name in sys.modules} & "
                "{'torch', 'transformers', 'pandas', 'polars', 'tqdm', 'IPython', 'tempfile'}))")
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        self.assertEqual(done.stdout.split() or ["tempfile"], ["tempfile"])


if __name__ == "__main__":
    unittest.main()
