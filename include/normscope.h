/* Normscope from C, and from whatever calls C (Julia, R, …): which keys can attention select?
 *
 *   normscope_keys* found = normscope_decide_keys(keys, n, d, NULL, NULL);
 *   if (found == NULL) puts(normscope_last_error());
 *   … found->verdict[i] …
 *   normscope_free(found);
 *
 * The library normscope_c. Functions may be called from several threads at once. */
#ifndef NORMSCOPE_H
#define NORMSCOPE_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(_WIN32)
#define NORMSCOPE_C
#else
#define NORMSCOPE_C __attribute__((visibility("default")))
#endif

enum normscope_verdict {
  NORMSCOPE_SELECTABLE = 0,   /* some query gives the key the strictly highest score */
  NORMSCOPE_TIED = 1,         /* some query puts it on top, but never alone */
  NORMSCOPE_UNSELECTABLE = 2, /* every query that distinguishes the keys puts another above it */
  NORMSCOPE_UNDECIDED = 3     /* beyond the effort of rational arithmetic */
};

/* Zeros mean what they say; normscope_default_options() has the rest. */
typedef struct normscope_options {
  double unit_roundoff; /* of the numbers: 2^-53 for doubles, 2^-24 if they were floats */
  int full_rank;        /* take every direction as it is, also those that hold only rounding */
  int lower_bounds;     /* margins are certified lower bounds, which is faster */
  int exact;            /* check every certificate in rational arithmetic */
  int threads;          /* 0: as many as the machine has; results do not depend on it */
} normscope_options;

typedef struct normscope_keys {
  size_t n, d, rank;      /* rank: of the affine hull the verdicts were decided in */
  unsigned char* verdict; /* n, each an enum normscope_verdict */
  unsigned char* robust;  /* n: no rounding of the numbers can have caused the verdict */
  double* margin;         /* n: of a selectable key, its distance to the hull of the others; else 0 */
  double* depth;          /* n: of an unselectable key, a lower bound of its depth; else 0 */
  double* witness;        /* n x d, row by row: a query that puts the key on top; NaN where there is none */
} normscope_keys;

NORMSCOPE_C normscope_options normscope_default_options(void);

/* keys: n x d, row by row. offsets: n numbers that are added to the scores, or NULL. options: or NULL.
 * NULL if the input is at fault or memory is short: normscope_last_error() says why. */
NORMSCOPE_C normscope_keys* normscope_decide_keys(const double* keys, size_t n, size_t d,
                                                  const double* offsets, const normscope_options* options);
NORMSCOPE_C void normscope_free(normscope_keys* keys); /* NULL is fine */

NORMSCOPE_C const char* normscope_version(void);
/* Of the last call in this thread, in one sentence; empty if it went well. Valid until the next. */
NORMSCOPE_C const char* normscope_last_error(void);

#ifdef __cplusplus
}
#endif

#endif
