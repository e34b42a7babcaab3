#include "competitor.h"
#include "normscope/executor.h"
#include "normscope/keys.h"

namespace normscope::bench {
namespace {

Answer decide(const Question& question, std::string name, Margins margins) {
  const Executor one_thread(1);
  KeyOptions options;
  options.margins = margins;
  const KeySet set = decide_keys(question.keys, {}, options, one_thread);
  Answer answer;
  answer.competitor = std::move(name);
  for (std::size_t i = 0; i < set.n; ++i) {
    answer.keys.push_back(i);
    answer.selectable.push_back(set.keys[i].verdict == Verdict::selectable);
  }
  answer.keys_per_pass = set.n;
  answer.passes = repeat([&] { decide_keys(question.keys, {}, options, one_thread); });
  return answer;
}

}  // namespace

Answer ask_normscope(const Question& question) {
  return decide(question, "normscope, verdicts and certificates", Margins::bound);
}

Answer ask_normscope_margins(const Question& question) {
  return decide(question, "normscope, exact margins too", Margins::exact);
}

}  // namespace normscope::bench
