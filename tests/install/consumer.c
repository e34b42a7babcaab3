/* A square and its centre, from C; and what is wrong is said, not done. */
#include <math.h>
#include <normscope.h>
#include <stdio.h>
#include <string.h>

static int fail(const char* what) {
  fprintf(stderr, "%s (%s)\n", what, normscope_last_error());
  return 1;
}

int main(void) {
  const double square[] = {1, 1, 1, -1, -1, 1, -1, -1, 0, 0}, nan_keys[] = {0, NAN};
  const char* const words[] = {"selectable", "tied", "unselectable", "undecided"};
  normscope_options options = normscope_default_options();
  normscope_keys* found;
  size_t i;
  options.exact = 1;
  found = normscope_decide_keys(square, 5, 2, NULL, &options);
  if (found == NULL || normscope_last_error()[0] != '\0') return fail("the square was not decided");
  for (i = 0; i < found->n; ++i) puts(words[found->verdict[i]]);
  if (found->rank != 2 || fabs(found->margin[0] - sqrt(2)) > 1e-12) return fail("a corner has another margin");
  if (!(found->witness[0] > 0 && found->witness[1] > 0) || !isnan(found->witness[8])) return fail("another witness");
  normscope_free(found);
  normscope_free(NULL);
  if (normscope_decide_keys(nan_keys, 1, 2, NULL, NULL) != NULL) return fail("NaN was taken for a key");
  if (strstr(normscope_last_error(), "NaN") == NULL && strstr(normscope_last_error(), "finite") == NULL)
    return fail("NaN is not named");
  if (normscope_decide_keys(NULL, 1, 2, NULL, NULL) != NULL) return fail("nothing was taken for keys");
  if (normscope_decide_keys(square, 0, 2, NULL, NULL) != NULL) return fail("no key was decided");
  if (normscope_decide_keys(square, (size_t)-1, 2, NULL, NULL) != NULL) return fail("too many keys were decided");
  return strlen(normscope_version()) < 5 ? fail("no version") : 0;
}
