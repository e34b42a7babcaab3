"""normscope.mask: masks as arrays and as graphs."""
import unittest

import numpy as np

import normscope


class Mask(unittest.TestCase):
    def test_allowed_is_the_mask(self):
        i, j = np.indices((9, 9))
        for spec, expected in (("causal", j <= i), ("window:2", abs(i - j) <= 2), ("onesided:1&causal", (i - j) // 2 == 0),
                               ("star", (i == 0) | (j == 0) | (i == j))):
            allowed = normscope.mask(spec, 9)["allowed"]
            self.assertEqual(allowed.dtype, bool)
            np.testing.assert_array_equal(allowed, expected, err_msg=spec)

    def test_radii_are_the_papers(self):
        found = {spec: normscope.mask(spec, 128)["radius"] for spec in ("full", "causal", "window:1", "onesided:1")}
        self.assertEqual(found, {"full": 1, "causal": 1, "window:1": 64, "onesided:1": 127})

    def test_what_is_infinite_is_none(self):
        causal, alone = normscope.mask("causal", 5), normscope.mask("self", 5)
        np.testing.assert_array_equal(causal["centres"], [0])
        self.assertEqual((causal["diameter"], causal["strongly_connected"]), (None, False))
        self.assertEqual((alone["radius"], len(alone["centres"]), alone["components"]), (None, 0, 5))

    def test_large_masks_need_no_array(self):
        found = normscope.mask("window:1", 100_000, dense=False)
        self.assertNotIn("allowed", found)
        self.assertEqual((found["radius"], found["diameter"]), (50_000, 99_999))

    def test_the_seed_decides_a_random_mask(self):
        draws = [normscope.mask("random:0.5", 20, seed=seed)["allowed"] for seed in (1, 1, 2)]
        np.testing.assert_array_equal(draws[0], draws[1])
        self.assertTrue((draws[0] != draws[2]).any())

    def test_wrong_calls_are_value_errors(self):
        for spec, n in (("casual", 3), ("window", 3), ("full", 0), ("prefix:4", 3)):
            with self.assertRaises(ValueError, msg=spec):
                normscope.mask(spec, n)


if __name__ == "__main__":
    unittest.main()
