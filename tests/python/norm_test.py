"""normscope.norm: what each half of a norm does, on arrays of any shape and dtype."""
import unittest

import numpy as np

import normscope

X = np.random.default_rng(0).standard_normal((4, 3, 8))


class Norm(unittest.TestCase):
    def test_layernorm_is_the_textbook_formula(self):
        gain, bias = np.arange(1.0, 9.0), np.linspace(-1, 1, 8)
        expected = (X - X.mean(-1, keepdims=True)) / np.sqrt(X.var(-1, keepdims=True) + 1e-5) * gain + bias
        np.testing.assert_allclose(normscope.norm(X, "layernorm", eps=1e-5, gain=gain, bias=bias), expected,
                                   rtol=1e-12, atol=1e-12)

    def test_layernorm_is_projection_then_scaling(self):
        np.testing.assert_allclose(normscope.norm(normscope.norm(X, "center"), "rmsnorm"), normscope.norm(X),
                                   rtol=1e-12, atol=1e-14)

    def test_scaling_sets_the_length_and_projection_the_mean(self):
        np.testing.assert_allclose(np.linalg.norm(normscope.norm(X, "rmsnorm"), axis=-1), np.sqrt(8), rtol=1e-12)
        np.testing.assert_allclose(np.linalg.norm(normscope.norm(X, "unit"), axis=-1), 1, rtol=1e-12)
        np.testing.assert_allclose(normscope.norm(X, "center").mean(-1), 0, atol=1e-15)
        np.testing.assert_array_equal(normscope.norm(X, "none"), X)

    def test_learned_normals_are_projected_out(self):
        normals = np.random.default_rng(1).standard_normal((2, 8))
        np.testing.assert_allclose(normscope.norm(X, "normals:2", normals=normals) @ normals.T, 0, atol=1e-13)

    def test_dtype_and_shape_are_kept(self):
        for dtype in (np.float16, np.float32, np.float64):
            result = normscope.norm(X.astype(dtype))
            self.assertEqual((result.dtype, result.shape), (dtype, X.shape))
        self.assertEqual(normscope.norm([1, 2, 4]).dtype, np.float64)
        self.assertEqual(normscope.norm(np.asfortranarray(X[0])).shape, X[0].shape)

    def test_rows_without_direction_are_counted(self):
        result, counts = normscope.norm([[0, 0, 0], [2, 2, 2], [1, 2, 3]], return_counts=True)
        self.assertEqual(counts, {"rows": 3, "zero_rows": 1, "constant_rows": 1})
        np.testing.assert_array_equal(result[:2], 0)

    def test_input_is_left_alone(self):
        x = X.copy()
        normscope.norm(x)
        np.testing.assert_array_equal(x, X)

    def test_wrong_calls_are_value_errors(self):
        for arguments in ({"variant": "layernom"}, {"eps": -1.0}, {"gain": [1, 2]}, {"gain": np.ones((1, 8))},
                          {"variant": "normals:2"}, {"variant": "normals:1", "normals": np.zeros((1, 8))}):
            with self.subTest(**arguments), self.assertRaises(ValueError):
                normscope.norm(X, **arguments)
        with self.assertRaises(ValueError):
            normscope.norm(3.0)

    def test_the_papers_identities_hold_to_rounding(self):
        for dimension in (2, 3, 8, 64):
            found = normscope.norm_identities(dimension, samples=20, seed=dimension)
            self.assertEqual((found.pop("dimension"), found.pop("samples")), (dimension, 20))
            self.assertEqual(found.pop("undefined"), 0)
            self.assertEqual(len(found), 11)
            for name, residual in found.items():
                self.assertLess(residual, 1e-13, name)
        self.assertNotEqual(normscope.norm_identities(8, seed=1), normscope.norm_identities(8, seed=2))
        for dimension in (1, 5000):
            with self.assertRaises(ValueError):
                normscope.norm_identities(dimension)


if __name__ == "__main__":
    unittest.main()
