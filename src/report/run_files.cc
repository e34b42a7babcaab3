#include "report/run_files.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <optional>

#include "normscope/error.h"
#include "result/json_reader.h"
#include "result/present_only.h"
#include "result/training.h"

namespace normscope {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr std::uintmax_t kMostConfig = 1 << 20, kMostResults = 256u << 20, kMostLog = 1u << 30;
constexpr std::size_t kMostValues = 10'000'000, kLongestLine = 1 << 16, kLongestText = 2000;
constexpr int kDeepest = 32;

// Lists that are large and that no figure shows: certificates, spectra, single tokens. They are read as
// empty.
constexpr std::string_view kUnread[] = {
    "witness", "tokens",       "exact_witness", "cover",   "interior", "tied_with",     "singular_values",
    "entropy", "least_weight", "places",        "margins", "ids",      "weight_places", "losses"};

std::uintmax_t size_of(const fs::path& path) {
  std::error_code unknown;
  if (!fs::is_regular_file(path, unknown))
    throw InputError(fmt::format("'{}' is not a file that can be read.", path.string()));
  const std::uintmax_t size = fs::file_size(path, unknown);
  if (unknown) throw InputError(fmt::format("'{}' cannot be read: {}.", path.string(), unknown.message()));
  return size;
}

std::string shortened(std::string text) {
  return text.size() <= kLongestText ? text : text.substr(0, kLongestText) + "…";
}

// None if it holds more values than are read.
std::optional<Json> read_json(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw InputError(fmt::format("'{}' cannot be opened for reading.", path.string()));
  struct TooMany {};
  using Event = Json::parse_event_t;
  std::size_t values = 0;
  bool large = false;         // the key that was read last names an unread list
  std::optional<int> unread;  // the depth of the list that is passed over
  const auto within_bounds = [&](int depth, Event event, Json& parsed) {
    if (depth > kDeepest)
      throw InputError(
          fmt::format("'{}' holds more than a run writes: over {} levels.", path.string(), kDeepest));
    if (unread && depth > *unread) return false;
    unread.reset();
    if (++values > kMostValues) throw TooMany();
    if (event == Event::key)
      large = std::find(std::begin(kUnread), std::end(kUnread), parsed.get_ref<const std::string&>()) !=
              std::end(kUnread);
    if (event == Event::array_start && large) unread = depth;
    if (event == Event::value && parsed.is_string()) parsed = shortened(parsed.get<std::string>());
    if (event != Event::key) large = false;
    return true;
  };
  try {
    return Json::parse(file, within_bounds);
  } catch (const TooMany&) {
    return std::nullopt;
  } catch (const nlohmann::json::exception&) {
    throw InputError(fmt::format("'{}' is not JSON that normscope wrote.", path.string()));
  }
}

// A visitor that takes the measures of a line which a series keeps.
class MeasureTaker : public PresentOnly<MeasureTaker> {
 public:
  explicit MeasureTaker(TrainingSeries::Row& row) : row_(row) { row_.values.fill(std::nan("")); }
  template <class Field>
  void operator()(const char* name, const Field& field, const char*, const Facts& = {}) {
    if constexpr (std::is_same_v<Field, double>) {
      for (std::size_t m = 0; m < row_.values.size(); ++m)
        if (std::string_view(TrainingSeries::measures[m]) == name) row_.values[m] = field;
    }
  }

 private:
  TrainingSeries::Row& row_;
};

struct LogLine {
  std::string norm;
  std::uint64_t seed;
  TrainingSeries::Row row;
};
template <class Measures>
LogLine line_of(const Json& json) {
  TrainingLine<Measures> line;
  JsonReader::read(json, "the line", line);
  LogLine taken{shortened(line.run.norm), line.run.seed, {static_cast<double>(line.step), {}}};
  MeasureTaker take(taken.row);
  Measures::describe(take, line.measures);
  return taken;
}

TrainingSeries& series_of(TrainingLog& log, const std::string& norm, std::uint64_t seed) {
  for (TrainingSeries& series : log.series) {
    if (series.seed == seed && series.norm == norm) return series;
  }
  log.series.push_back({norm, seed, {}});
  return log.series.back();
}

TrainingLog read_log(const fs::path& path, bool majority) {
  std::error_code unknown;
  TrainingLog log;
  if (!fs::exists(path, unknown)) return log;
  if (size_of(path) > kMostLog)
    throw InputError(fmt::format("'{}' is larger than {} MB.", path.string(), kMostLog >> 20));
  std::ifstream file(path, std::ios::binary);
  std::size_t rows = 0, line = 0;
  std::string text(kLongestLine, '\0');
  for (;;) {
    file.getline(text.data(), static_cast<std::streamsize>(kLongestLine));
    if (file.eof()) return log;  // a last line without a newline was torn by a kill
    ++line;
    const auto length = static_cast<std::size_t>(std::max<std::streamsize>(1, file.gcount())) - 1;
    const Json json = file ? Json::parse(text.data(), text.data() + length, nullptr, false) : Json();
    LogLine read;
    try {
      read = majority ? line_of<MajorityMeasures<double>>(json) : line_of<TextMeasures>(json);
    } catch (const InputError&) {
      throw InputError(fmt::format("'{}' line {} is not one that normscope wrote.", path.string(), line));
    }
    TrainingSeries& series = series_of(log, read.norm, read.seed);
    if (log.series.size() > TrainingLog::most_series)
      throw InputError(fmt::format("'{}' holds more than {} runs.", path.string(), TrainingLog::most_series));
    series.rows.push_back(read.row);
    if (++rows < TrainingLog::most_rows) continue;
    log.halve();
    rows = log.rows();
  }
}

}  // namespace

std::size_t TrainingLog::rows() const {
  std::size_t count = 0;
  for (const TrainingSeries& each : series) count += each.rows.size();
  return count;
}

// The same rows of every series, so that seeds still meet at the same steps.
void TrainingLog::halve() {
  for (TrainingSeries& each : series) {
    std::vector<TrainingSeries::Row> kept;
    for (std::size_t i = 0; i < each.rows.size(); i += 2) kept.push_back(each.rows[i]);
    left_out += each.rows.size() - kept.size();
    each.rows = std::move(kept);
  }
}

bool RunFiles::has_report() const {
  std::error_code unknown;
  return fs::is_regular_file(directory / "report.html", unknown);
}

RunFiles read_run(const fs::path& directory) {
  std::error_code unknown;
  if (!fs::is_directory(directory, unknown))
    throw InputError(
        fmt::format("'{}' is not a directory; name the directories that --out named.", directory.string()));
  RunFiles run;
  run.directory = directory;
  run.name = directory.string();
  while (run.name.size() > 1 && run.name.ends_with('/')) run.name.pop_back();
  const fs::path config = directory / "config.json", results = directory / "results.json";
  if (!fs::exists(config, unknown))
    throw InputError(fmt::format(
        "'{}' is not the directory of a normscope run: it has no config.json of one; name the directory that "
        "--out named.",
        directory.string()));
  if (size_of(config) > kMostConfig)
    throw InputError(fmt::format("'{}' is larger than a config.json of normscope.", config.string()));
  run.config = read_json(config).value_or(Json());
  run.command = text_of(run.config, "command");
  if (text_of(run.config, "program") != "normscope" || run.command.empty())
    throw InputError(fmt::format("'{}' is not that of a normscope run.", config.string()));
  if (!fs::exists(results, unknown)) {
    run.note = "No results.json yet: the run goes on, or was stopped.";
  } else {
    run.finished = true;
    const auto read = size_of(results) <= kMostResults ? read_json(results) : std::nullopt;
    if (read && !read->is_object())
      throw InputError(fmt::format("'{}' is not JSON that normscope wrote.", results.string()));
    if (!read) run.note = "results.json is too large to be read here; the run's own report shows it.";
    run.results = read.value_or(Json());
  }
  if (run.command.starts_with("train "))
    run.log = read_log(directory / "metrics.jsonl", run.command == "train majority");
  return run;
}

std::uint64_t count_of(const Json& json, const char* name) {
  if (!json.is_object()) return 0;
  const auto found = json.find(name);
  return found != json.end() && found->is_number_unsigned() ? found->get<std::uint64_t>() : 0;
}

std::string text_of(const Json& json, const char* name) {
  if (!json.is_object()) return "";
  const auto found = json.find(name);
  if (found == json.end() || !found->is_string()) return "";
  return shortened(found->get<std::string>());
}

const Json& object_of(const Json& json, const char* name) {
  static const Json none = Json::object();
  if (!json.is_object()) return none;
  const auto found = json.find(name);
  return found != json.end() && found->is_object() ? *found : none;
}

}  // namespace normscope
