"""normscope.decide_keys: the verdicts and their certificates, and every way an array can reach it."""
import ctypes
import unittest
from fractions import Fraction

import numpy as np

import interrupts
import normscope

SQUARE = np.array([[1, 1], [1, -1], [-1, 1], [-1, -1], [0, 0]], dtype=np.float64)
VERDICTS = ["selectable"] * 4 + ["unselectable"]


def gaussian(*shape, dtype=np.float64, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


class Tensor:
    """A tensor of another library, as NumPy sees it: it offers only what it is told to."""

    def __init__(self, values, **offers):
        self.values = values
        for name, value in offers.items():
            setattr(self, name, value)


class ArrayTensor(Tensor):
    def __array__(self, dtype=None):
        return np.asarray(self.values, dtype)


class DlpackTensor(Tensor):
    def __dlpack__(self, stream=None):
        return self.values.__dlpack__()

    def __dlpack_device__(self):
        return self.values.__dlpack_device__()


class GradientTensor(Tensor):
    """Refuses to be viewed until it is detached, as PyTorch's tensors do while they record gradients."""

    def __array__(self, dtype=None):
        raise RuntimeError("Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.")

    def detach(self):
        return ArrayTensor(self.values)


class BfloatTensor(Tensor):
    """PyTorch's bfloat16, which NumPy has no type for."""

    dtype = "torch.bfloat16"

    def __array__(self, dtype=None):
        raise TypeError("Got unsupported ScalarType BFloat16")

    def float(self):
        return ArrayTensor(self.values.astype(np.float32))


class ExportedTensor(ctypes.Structure):
    """What a capsule of DLPack holds."""

    _fields_ = [("data", ctypes.c_void_p), ("device_kind", ctypes.c_int32), ("device", ctypes.c_int32), ("axes", ctypes.c_int32),
                ("kind", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)), ("offset", ctypes.c_uint64),
                ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


class CapsuleTensor:
    """Of a library that offers DLPack alone: bfloat16, of which NumPy knows nothing, as every second column of what is twice as wide."""

    def __init__(self, values, kind=4, bits=16):
        values = np.asarray(values, np.float32)
        self.wide = np.zeros((values.shape[0], 1 + 2 * values.shape[1]), np.uint16)
        self.wide[:, 1::2] = values.view(np.uint32) >> 16
        self.shape = (ctypes.c_int64 * 2)(*values.shape)
        self.strides = (ctypes.c_int64 * 2)(self.wide.shape[1], 2)
        self.tensor = ExportedTensor(self.wide.ctypes.data, 1, 0, 2, kind, bits, 1, self.shape, self.strides, 2, None, None)

    def __dlpack_device__(self):
        return (1, 0)

    def __dlpack__(self, **_):
        made = ctypes.pythonapi.PyCapsule_New
        made.restype, made.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        return made(ctypes.addressof(self.tensor), b"dltensor", None)


class Verdicts(unittest.TestCase):
    def test_corners_of_a_square_are_selectable_and_its_centre_is_not(self):
        result = normscope.decide_keys(SQUARE)
        self.assertEqual(result.verdict.tolist(), VERDICTS)
        self.assertEqual(result.counts, {"selectable": 4, "tied": 0, "unselectable": 1})
        self.assertEqual((result.n, result.d, result.rank, len(result)), (5, 2, 2, 5))
        np.testing.assert_allclose(result.margin[:4], np.sqrt(2), rtol=1e-12)

    def test_equal_keys_are_tied_with_each_other(self):
        result = normscope.decide_keys([[1, 0], [1, 0], [0, 1], [0, 0]])
        self.assertEqual(result.verdict.tolist(), ["tied", "tied", "selectable", "selectable"])
        self.assertEqual([ties.tolist() for ties in result.tied_with], [[1], [0], [], []])

    def test_offsets_lift_the_centre_above_the_corners(self):
        result = normscope.decide_keys(SQUARE, offsets=[0, 0, 0, 0, 1])
        self.assertEqual(result.verdict.tolist(), ["selectable"] * 5)

    def test_witness_gives_its_key_the_strictly_highest_score(self):
        keys = gaussian(40, 4)
        result = normscope.decide_keys(keys)
        self.assertEqual(result.witness.shape, keys.shape)
        chosen = result.verdict == "selectable"
        self.assertGreater(chosen.sum(), 0)
        for key in np.flatnonzero(chosen):
            scores = keys @ result.witness[key]
            self.assertTrue((np.delete(scores, key) < scores[key]).all())
            self.assertIsNone(result.covers[key])
        self.assertTrue(np.isnan(result.witness[result.verdict == "unselectable"]).all())

    def test_cover_reproduces_its_key(self):
        keys = gaussian(200, 3)
        result = normscope.decide_keys(keys)
        covered = np.flatnonzero(result.verdict == "unselectable")
        self.assertGreater(len(covered), 0)
        for key in covered:
            indices, weights = result.covers[key]
            self.assertLessEqual(len(indices), keys.shape[1] + 1)
            self.assertNotIn(key, indices)
            self.assertTrue((weights > 0).all())
            self.assertAlmostEqual(weights.sum(), 1, places=12)
            np.testing.assert_allclose(weights @ keys[indices], keys[key], atol=1e-12)

    def test_exact_verifies_every_certificate(self):
        self.assertTrue(normscope.decide_keys(gaussian(30, 3), exact=True).verified.all())

    def test_witness_holds_exactly_on_nearly_collinear_keys(self):
        # The queries that select key 5 form a cone narrower than an ulp; its witness may have to be fractions.
        keys = np.array([[-0.09482115251246248, -1.0979988584946943, -0.9493361810055058],
                         [0.09607159222878758, -0.9454967281758151, -0.6480525209965979],
                         [0.43500764825180843, -0.6747244122585603, -0.11311393228273495],
                         [0.5609278500937138, -0.5741281373341094, 0.08562436618645641],
                         [1.1195783487689384, -0.12782835120469965, 0.9673355445490284],
                         [1.2794881434287784, -7.816154958495414e-05, 1.2197191973258468],
                         [1.3015141966709434, 0.01751821198729464, 1.2544826449641824],
                         [1.3133889827554932, 0.027004848985623053, 1.2732244730950808]])
        result = normscope.decide_keys(keys, rank="full")
        self.assertEqual(result.verdict[5], "selectable")
        for key in np.flatnonzero(result.verdict == "selectable"):
            query = result.exact_witnesses[key] or [Fraction(x) for x in result.witness[key]]
            scores = [sum(Fraction(x) * q for x, q in zip(row, query)) for row in keys]
            self.assertEqual([i for i, score in enumerate(scores) if score >= scores[key]], [key])

    def test_without_certificates_the_verdicts_stay(self):
        keys = gaussian(60, 3)
        with_them, without = normscope.decide_keys(keys), normscope.decide_keys(keys, certificates=False)
        self.assertEqual(with_them.verdict.tolist(), without.verdict.tolist())
        self.assertIsNone(without.witness)

    def test_prefix_and_query_norm_fill_their_fields_only_when_asked(self):
        plain = normscope.decide_keys(SQUARE)
        self.assertIsNone(plain.last_prefix)
        self.assertIsNone(plain.max_weight)
        result = normscope.decide_keys(SQUARE[[4, 0, 1, 2, 3]], prefix=True, query_norm=1.0)
        self.assertEqual(result.last_prefix.tolist(), [3, 5, 5, 5, 5])
        self.assertTrue((result.max_weight <= result.max_weight_bound).all())

    def test_noise_larger_than_the_square_leaves_no_robust_verdict(self):
        self.assertEqual(normscope.decide_keys(SQUARE, noise=1e-6).robust_counts["selectable"], 4)
        self.assertFalse(normscope.decide_keys(SQUARE, noise=10.0).robust.any())

    def test_result_does_not_depend_on_threads(self):
        keys = gaussian(300, 6)
        one, four = normscope.decide_keys(keys, threads=1), normscope.decide_keys(keys, threads=4)
        np.testing.assert_array_equal(one.verdict, four.verdict)
        np.testing.assert_array_equal(one.margin, four.margin)
        np.testing.assert_array_equal(one.witness, four.witness)


class Batches(unittest.TestCase):
    def test_each_set_of_a_batch_is_decided_as_if_alone(self):
        keys = gaussian(7, 30, 3)
        results = normscope.decide_keys(keys)
        self.assertEqual(len(results), 7)
        for alone, result in zip(map(normscope.decide_keys, keys), results):
            np.testing.assert_array_equal(alone.verdict, result.verdict)
            np.testing.assert_array_equal(alone.margin, result.margin)

    def test_offsets_are_shared_or_per_set(self):
        keys, lifted = np.stack([SQUARE, SQUARE]), np.array([0, 0, 0, 0, 1.0])
        shared = normscope.decide_keys(keys, lifted)
        self.assertEqual([result.counts["selectable"] for result in shared], [5, 5])
        each = normscope.decide_keys(keys, np.stack([lifted, 0 * lifted]))
        self.assertEqual([result.counts["selectable"] for result in each], [5, 4])

    def test_an_empty_batch_has_no_results(self):
        self.assertEqual(normscope.decide_keys(np.zeros((0, 5, 2))), [])

    def test_an_error_names_the_set(self):
        keys = gaussian(3, 5, 2)
        keys[1, 4, 0] = np.nan
        with self.assertRaisesRegex(ValueError, r"keys\[1\]"):
            normscope.decide_keys(keys)


class Arrays(unittest.TestCase):
    def check(self, keys, unit_roundoff):
        result = normscope.decide_keys(keys)
        self.assertEqual(result.verdict.tolist(), VERDICTS)
        self.assertEqual(result.unit_roundoff, unit_roundoff)

    def test_unit_roundoff_is_that_of_the_dtype(self):
        for dtype, unit_roundoff in ((np.float16, 2**-11), (np.float32, 2**-24), (np.float64, 2**-53),
                                     (">f4", 2**-24), (np.int8, 2**-53), (np.int64, 2**-53)):
            with self.subTest(dtype=dtype):
                self.check(SQUARE.astype(dtype), unit_roundoff)
        self.assertEqual(normscope.decide_keys(SQUARE, unit_roundoff=2**-9).unit_roundoff, 2**-9)

    def test_offsets_are_rounded_like_their_dtype(self):
        keys, offsets = np.array([[-1.0], [1], [0]]), np.array([1000, 1000, 1000.5])
        for dtype, robust in ((np.float64, True), (np.float32, True), (np.float16, False)):
            with self.subTest(dtype=dtype.__name__):
                result = normscope.decide_keys(keys, offsets.astype(dtype))
                self.assertEqual(result.verdict[2], "selectable")
                self.assertEqual(result.robust[2], robust)

    def test_numbers_near_zero_are_rounded_like_their_dtype(self):
        keys = np.array([[0], [2.0**-24]])  # one step of float16, where it is coarsest
        for dtype, robust in ((np.float64, True), (np.float32, True), (np.float16, False)):
            with self.subTest(dtype=dtype.__name__):
                result = normscope.decide_keys(keys.astype(dtype), rank="full")
                self.assertEqual(list(result.robust), [robust] * 2)

    def test_a_large_mean_of_few_bits_hides_no_direction(self):
        keys = (np.random.RandomState(12).randn(12, 2) + 100).astype(np.float16)
        result, full = normscope.decide_keys(keys), normscope.decide_keys(keys, rank="full")
        self.assertEqual(result.rank, 2)
        self.assertEqual(list(result.verdict), list(full.verdict))

    def test_layout_does_not_matter(self):
        wide = np.zeros((10, 6), dtype=np.float32)
        wide[::2, 1::3] = SQUARE
        read_only = SQUARE.copy()
        read_only.flags.writeable = False
        for name, keys in {
            "strided": wide[::2, 1::3],
            "Fortran": np.asfortranarray(SQUARE),
            "reversed": np.ascontiguousarray(SQUARE[::-1])[::-1],
            "read-only": read_only,
            "list": SQUARE.tolist(),
            "memoryview": memoryview(SQUARE),
        }.items():
            with self.subTest(name):
                self.assertEqual(normscope.decide_keys(keys).verdict.tolist(), VERDICTS)

    def test_input_is_left_alone(self):
        keys = SQUARE.copy()
        normscope.decide_keys(keys)
        np.testing.assert_array_equal(keys, SQUARE)

    def test_tensors_of_other_libraries(self):
        self.check(ArrayTensor(SQUARE.astype(np.float32)), 2**-24)
        self.check(DlpackTensor(SQUARE.astype(np.float32)), 2**-24)
        self.check(GradientTensor(SQUARE.astype(np.float16)), 2**-11)
        self.check(BfloatTensor(SQUARE), 2**-8)
        self.check(CapsuleTensor(SQUARE), 2**-8)

    def test_what_dlpack_holds_that_is_no_real_number_is_a_type_error(self):
        for kind, bits in ((5, 128), (4, 8), (17, 16)):  # complex; and of kinds nobody knows
            with self.subTest(kind=kind), self.assertRaisesRegex(TypeError, "keys cannot be read through DLPack|real numbers"):
                normscope.decide_keys(CapsuleTensor(SQUARE, kind, bits))

    def test_where_the_numbers_lie_does_not_matter(self):
        raw = b"\0" + SQUARE.tobytes()
        keys = np.frombuffer(raw, np.uint8)[1:].view(np.float64).reshape(SQUARE.shape)
        self.assertFalse(keys.flags.aligned)
        self.check(keys, 2**-53)


class Errors(unittest.TestCase):
    def test_what_is_wrong_with_the_numbers_is_a_value_error(self):
        broken = SQUARE.copy()
        broken[3, 1] = np.nan
        masked = np.ma.masked_equal(SQUARE, 0)
        for name, keys in {"NaN": broken, "Inf": np.where(np.isnan(broken), np.inf, broken), "0 rows": np.zeros((0, 2)), "1-D": SQUARE[0],
                           "4-D": SQUARE[None, None], "masked": masked, "integers": [[2**60, 0], [0, 1]]}.items():
            with self.subTest(name), self.assertRaises(ValueError):
                normscope.decide_keys(keys)

    def test_a_nan_is_named_by_row_and_column(self):
        broken = SQUARE.copy()
        broken[3, 1] = np.nan
        with self.assertRaisesRegex(ValueError, r"\b3\b.*\b1\b"):
            normscope.decide_keys(broken)

    def test_what_holds_no_real_numbers_is_a_type_error(self):
        for keys in (SQUARE.astype(complex), np.array([["a", "b"]]), np.array([[None, None]]), SQUARE.astype("longdouble")):
            with self.subTest(dtype=keys.dtype), self.assertRaisesRegex(TypeError, str(keys.dtype)):
                normscope.decide_keys(keys)

    def test_wrong_options_are_value_errors(self):
        for options in ({"rank": "half"}, {"margins": "none"}, {"threads": -1}, {"offsets": [1, 2]},
                        {"offsets": np.zeros((2, 5))}, {"noise": -1.0}, {"query_norm": float("nan")},
                        {"unit_roundoff": -1.0}):
            with self.subTest(**options), self.assertRaises(ValueError):
                normscope.decide_keys(SQUARE, **options)


class Module(unittest.TestCase):
    def test_tells_what_it_is(self):
        self.assertRegex(normscope.__version__, r"^\d+\.\d+\.\d+$")
        self.assertTrue(normscope.__commit__)
        self.assertIn("5 keys", repr(normscope.decide_keys(SQUARE)))

    def test_other_threads_run_while_it_decides(self):
        def call_of(size):
            keys = gaussian(6 * size, 1000, 10)
            return lambda: normscope.decide_keys(keys, threads=1)

        ticks = interrupts.ticks_during(call_of)
        self.assertGreater(ticks, 5)


class BelowFullRank(unittest.TestCase):
    def test_a_product_has_the_rank_of_its_factors(self):
        random = np.random.default_rng(3)
        for dtype, n, d, rank in [(np.float64, 40, 32, 1), (np.float64, 60, 16, 5), (np.float64, 80, 64, 20),
                                  (np.float64, 200, 128, 64), (np.float32, 600, 256, 128)]:
            left = random.normal(size=(n, rank)).astype(dtype)
            keys = left @ random.normal(size=(rank, d)).astype(dtype)
            found = normscope.decide_keys(keys, margins="bound", certificates=False)
            self.assertEqual(found.rank, rank)
            self.assertEqual(found.matrix_rank, np.linalg.matrix_rank(keys - keys.mean(0)))
            self.assertEqual(len(found.kept), rank)
            truth = normscope.decide_keys(left, margins="bound", certificates=False)
            np.testing.assert_array_equal(found.verdict, truth.verdict)

    def test_covers_hold_on_the_coordinates_kept(self):
        random = np.random.default_rng(4)
        keys = (random.normal(size=(60, 3)) @ random.normal(size=(3, 8))).astype(np.float32)
        found = normscope.decide_keys(keys, exact=True)
        self.assertEqual(found.rank, 3)
        wide = keys.astype(np.float64)
        for key in np.flatnonzero(found.verdict == "unselectable"):
            indices, weights = found.covers[key]
            off = weights @ wide[indices] - wide[key]
            self.assertLess(np.abs(off[found.kept]).max(), 1e-14 * np.abs(wide).max())
            self.assertLessEqual(np.linalg.norm(off), 2 * found.left_out + 1e-12)

    def test_full_rank_keeps_every_coordinate(self):
        found = normscope.decide_keys(np.random.default_rng(5).normal(size=(20, 3)))
        self.assertIsNone(found.kept)
        self.assertEqual((found.left_out, found.matrix_rank), (0, 3))

    def test_errors_take_the_place_of_rounding(self):
        keys = np.array([[0.0, 0], [2, 0], [0, 2], [2, 2], [1, 0.9]])
        self.assertTrue(normscope.decide_keys(keys).robust[4])
        self.assertFalse(normscope.decide_keys(keys, errors=[0, 0, 0, 0, 2.0]).robust[4])
        with self.assertRaisesRegex(ValueError, "errors"):
            normscope.decide_keys(keys, errors=[0.0])

    def test_without_effort_ties_are_undecided(self):
        keys = np.array([[0.0, 0], [2, 0], [0, 2], [2, 2], [1, 0]])
        found = normscope.decide_keys(keys, effort=0)
        self.assertEqual(found.verdict[4], "undecided")
        self.assertEqual(found.counts["undecided"], 1)
        self.assertGreaterEqual(found.margin_at_most[4], 0)


if __name__ == "__main__":
    unittest.main()
