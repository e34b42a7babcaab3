// The corners of a square are selectable, its centre is not.
#include <normscope/keys.h>

#include <cstdio>
#include <vector>

int main() {
  const std::vector<double> keys = {1, 1, 1, -1, -1, 1, -1, -1, 0, 0};
  const normscope::Executor executor;
  const normscope::KeySet set = normscope::decide_keys({keys.data(), 5, 2}, {}, {}, executor);
  for (const normscope::KeyVerdict& key : set.keys) std::printf("%s\n", normscope::name_of(key.verdict));
}
