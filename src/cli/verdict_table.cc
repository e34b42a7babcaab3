#include "cli/verdict_table.h"

#include <algorithm>
#include <vector>

#include "cli/common.h"
#include "core/number_text.h"
#include "result/columns.h"

namespace normscope::cli {
namespace {

struct VerdictRow {
  std::string verdict;
  std::size_t count, whole;
  std::size_t robust;
  const char* what;
  int digits;

  static void describe(auto& visit, auto& self) {
    visit("verdict", self.verdict, "what queries can do with them");
    visit(self.what, self.count, "with this verdict");
    visit("share", percent_of(self.count, self.whole, self.digits), "of all");
    visit("robust", self.robust, "whose verdict no rounding can have caused");
  }
};

// A visitor that makes a row of each verdict that there is.
class VerdictRows {
 public:
  VerdictRows(const char* what, int digits, std::size_t whole)
      : what_(what), digits_(digits), whole_(whole) {}
  void operator()(const char* name, std::size_t count, const char*, const Facts& = {}) {
    rows_.push_back({name, count, whole_, 0, what_, digits_});
  }
  void when(bool present, const char* name, std::size_t count, const char* sentence, const Facts& = {}) {
    if (present) (*this)(name, count, sentence);
  }
  std::vector<VerdictRow>& rows() { return rows_; }

 private:
  const char* what_;
  int digits_;
  std::size_t whole_;
  std::vector<VerdictRow> rows_;
};

}  // namespace

std::string verdict_table(const KeyCounts& all, const KeyCounts& robust, const char* what, int digits) {
  const std::size_t whole = all.selectable + all.tied + all.unselectable + all.undecided;
  VerdictRows verdicts(what, digits, whole), steady(what, digits, whole);
  KeyCounts::describe(verdicts, all);
  KeyCounts::describe(steady, robust);
  for (std::size_t i = 0; i < std::min(verdicts.rows().size(), steady.rows().size()); ++i)
    verdicts.rows()[i].robust = steady.rows()[i].count;
  return table(table_of(verdicts.rows()));
}

}  // namespace normscope::cli
