#include "fetch/data.h"

#include <fmt/core.h>

#include "fetch/place.h"
#include "normscope/error.h"

namespace normscope::fetch {

std::string megabytes(std::uint64_t bytes) {
  return fmt::format("{:.1f}", static_cast<double>(bytes) / 1e6);
}

DataListResult list_data() {
  DataListResult result{provenance(0, 0), data_directory().string(), {}};
  for (const DataSet& set : data_sets())
    result.data.push_back({set.name, is_fetched(set.name), place_of(set.name).string(), set.bytes, set.what,
                           set.terms, set.package, set.version, set.integrity});
  return result;
}

DataGetResult get_data(const DataGetOptions& options, const DataGetEvents& events) {
  std::vector<const DataSet*> sets;
  sets.reserve(options.names.size());
  for (const std::string& name : options.names) sets.push_back(&data_set(name));
  DataGetResult result{provenance(0, 0), {}};
  for (const DataSet* set : sets) {
    const Fetched fetched = fetch(*set, data_directory(), events.begins(*set), events.stop);
    result.data.push_back({set->name, fetched.path.string(), fetched.was_there, fetched.resumed, set->terms});
    events.ends(result.data.back());
  }
  return result;
}

DataPathResult data_path(const DataPathOptions& options) {
  const DataSet& set = data_set(options.name);
  if (!is_fetched(set.name))
    throw InputError(fmt::format("{} has not been fetched; `normscope data get {}` does it ({} MB).",
                                 options.name, options.name, megabytes(set.bytes)));
  return {provenance(0, 0), set.name, place_of(set.name).string()};
}

}  // namespace normscope::fetch
