#pragma once
// Pieces of work with results of any type: on the threads of an executor, or wherever its Pieces are done; and
// what else the processes of a job do together.
#include <functional>
#include <string>
#include <vector>

#include "core/pack.h"
#include "core/working_order.h"
#include "normscope/executor.h"
#include "normscope/pieces.h"

namespace normscope {

// body(piece, executor) returns a Result, for every piece of `work`, whose own `result` is not looked at. The
// results come in order.
template <class Result, class Body>
std::vector<Result> run_pieces(const Executor& executor, PieceWork work, const Body& body) {
  const std::size_t count = work.costs.size();
  std::vector<Result> results;
  if (Pieces* pieces = executor.pieces(); pieces != nullptr && count > 0) {
    work.result = [&](std::size_t piece, const Executor& inside) { return packed(body(piece, inside)); };
    std::vector<HeldBytes> bytes = pieces->run(work, executor);
    results.reserve(count);
    for (HeldBytes& each : bytes) {
      results.push_back(unpacked<Result>(each.bytes));
      each = {};  // large results are not there twice
    }
    return results;
  }
  results.resize(count);
  const auto one = [&](std::size_t piece, const Executor& inside) {
    results[piece] = body(piece, inside);
    if (work.finished) work.finished(piece);
  };
  if (count < static_cast<std::size_t>(executor.threads())) {  // few and large: threads inside each
    for (std::size_t piece = 0; piece < count; ++piece) executor.require_going_on(), one(piece, executor);
    return results;
  }
  const auto order = working_order(work.costs, static_cast<std::size_t>(executor.threads()));
  const Executor alone(1);
  executor.for_each(count, [&](std::size_t turn) { one(order[turn], alone); });
  return results;
}

// Whether this process prints and writes: of a job only the first does.
inline bool is_first_process(const Executor& executor) {
  return executor.pieces() == nullptr || executor.pieces()->first();
}
inline bool is_alone(const Executor& executor) {
  return executor.pieces() == nullptr || executor.pieces()->processes() <= 1;
}

// What the first process makes, in all of them.
inline std::string from_first(const Executor& executor, const std::function<std::string()>& make) {
  return executor.pieces() == nullptr ? make() : executor.pieces()->from_first(make);
}

// While this lives, works are of a part of the run that may be left out when it goes on.
class PieceScope {
 public:
  PieceScope(const Executor& executor, const std::string& name) : pieces_(executor.pieces()) {
    if (pieces_ != nullptr) pieces_->enter(name);
  }
  ~PieceScope() {
    if (pieces_ != nullptr) pieces_->leave();
  }
  PieceScope(const PieceScope&) = delete;
  PieceScope& operator=(const PieceScope&) = delete;

 private:
  Pieces* pieces_;
};

}  // namespace normscope
