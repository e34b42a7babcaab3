#include "cli/kept.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>

#include "checkpoint/places.h"
#include "cli/interrupt.h"
#include "cluster/job.h"
#include "core/fetched.h"
#include "normscope/error.h"
#include "normscope/tensor_file.h"
#include "normscope/version.h"
#include "record/json.h"

namespace normscope::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kUnchecked = "0000000000000000";

// What an unfinished run leaves beside its pieces.
struct RunPlan {
  std::string program = "normscope", command = {}, version = {}, commit = {}, instruction_set = {};
  std::string directory = {};
  std::uint64_t seed = 0;
  AnyJson options = {};
  std::string check = std::string(kUnchecked);

  static void describe(auto& visit, auto& self) {
    visit("program", self.program, "that began it", {.always = "normscope"});
    visit("command", self.command, "that was run");
    visit("version", self.version, "of the program");
    visit("commit", self.commit, "it was built from");
    visit("instruction_set", self.instruction_set, "it computed with");
    visit("directory", self.directory, "it was begun in, where relative names of files begin");
    visit("seed", self.seed, "of every random number");
    visit("options", self.options, "all of them");
    visit("check", self.check, "a sum over this file, with zeros in its place");
  }
};

// The plan as a file: a changed byte would begin another run in the place of the one to go on with.
std::string with_check(std::string plan) {
  const std::size_t at = plan.rfind(kUnchecked);
  return plan.replace(at, kUnchecked.size(), fmt::format("{:016x}", checksum(plan)));
}
bool is_as_written(std::string text, const std::string& check) {
  const std::size_t at = text.rfind(check);
  if (check.size() != kUnchecked.size() || at == text.npos) return false;
  text.replace(at, check.size(), kUnchecked);
  return with_check(text).substr(at, check.size()) == check;
}

// Size and time of a file, or of all in a directory: enough to see that it was replaced.
void stamp(const fs::path& path, std::string& into) {
  std::error_code unknown;
  if (fs::is_directory(path, unknown)) {
    std::vector<fs::path> files;
    for (const auto& entry : fs::directory_iterator(path, unknown))
      if (!entry.is_directory(unknown)) files.push_back(entry.path());
    std::sort(files.begin(), files.end());
    for (const fs::path& file : files) stamp(file, into);
    return;
  }
  into += fmt::format("\n{} {} {}", path.string(), fs::file_size(path, unknown),
                      fs::last_write_time(path, unknown).time_since_epoch().count());
}

// Where a name of a model or a file leads.
fs::path place_of(const std::string& input) {
  std::error_code unknown;
  fs::path file = tensor_place(input).path;
  if (fs::exists(file, unknown)) return file;
  if (const auto fetched = fetched_directory(input)) return *fetched;
  return checkpoint::in_hugging_face_cache(input).value_or(fs::path(input));
}

RunPlan plan_of(const std::string& name, const Common& common, const std::string& options) {
  std::error_code unknown;
  RunPlan plan;
  plan.command = name;
  plan.version = version();
  plan.commit = commit();
  plan.instruction_set = instruction_set();
  plan.directory = fs::current_path(unknown).string();
  plan.seed = common.seed;
  plan.options = {options};
  return plan;
}

std::string read_plan(const fs::path& run, const std::string& name) {
  const auto plan = plan_of_unfinished_run(run);
  if (plan) return *plan;
  const std::string held = command_of(run);
  throw InputError(
      held == name
          ? fmt::format("'{}' holds a run of 'normscope {}' that has ended: there is nothing to go on with.",
                        run.string(), name)
      : held.empty()
          ? fmt::format(
                "'{}' holds no unfinished run: name the directory that --out of 'normscope {}' named, of a "
                "run that was stopped after its first second.",
                run.string(), name)
          : fmt::format("'{}' is a run of 'normscope {}', not of 'normscope {}'.", run.string(), held, name));
}

void require_ours(const RunPlan& plan, const std::string& name, const std::string& run) {
  if (plan.command != name)
    throw InputError(fmt::format("'{}' is a run of 'normscope {}', not of 'normscope {}'.", run,
                                 printable(plan.command), name));
  const auto made = [](const RunPlan& by) {
    return fmt::format("{} (commit {}, {})", by.version, by.commit, by.instruction_set);
  };
  const RunPlan mine = plan_of(name, {}, "{}");
  if (made(plan) != made(mine))
    throw InputError(fmt::format(
        "'{}' was begun by normscope {}, but this is {}, which may not give the same numbers; finish it "
        "with that one or start anew.",
        run, printable(made(plan)), made(mine)));
}

}  // namespace

void allow_resuming(CLI::App& command) {
  for (CLI::Option* option : command.get_options())
    if (option->get_positional() && option->get_required()) option->required(false)->group("Inputs");
}

KeptRun::KeptRun(std::string name, const Common& common, const CLI::App& command, const std::string& resume,
                 std::initializer_list<std::string_view> allowed)
    : name_(std::move(name)), common_(common) {
  if (!resumes(command, allowed)) {
    for (const CLI::Option* option : command.get_options())
      if (option->get_group() == "Inputs" && option->count() == 0)
        throw CLI::RequiredError(option->get_name());
    return;
  }
  const std::string text = common_.job->from_first([&] { return read_plan(resume, name_); });
  const auto plan = from_json<RunPlan>(text, fmt::format("'{}/{}/plan.json'", resume, kPiecesFolder));
  require_ours(plan, name_, resume);
  if (!is_as_written(text, plan.check))
    throw InputError(
        fmt::format("'{}/{}/plan.json' is not as it was written; begin the run anew, with --out.", resume,
                    kPiecesFolder));
  common_.out = fs::absolute(resume).string();
  common_.seed = plan.seed;
  resumed_ = plan.options.text;
  std::error_code gone;
  fs::current_path(plan.directory, gone);
  if (gone)
    throw InputError(fmt::format("'{}' was begun in '{}', which is not there any more.", resume,
                                 printable(plan.directory)));
}

KeptRun::~KeptRun() {
  common_.job->keep_in(nullptr);
}

const RunDirectory* KeptRun::begin_with(const std::string& options,
                                        std::initializer_list<std::string> inputs) {
  directory_ = replaceable_directory(common_, inputs);
  if (!directory_) return nullptr;
  const fs::path& path = directory_->path();
  if (resumed_.empty()) remove_pieces(path);
  if (std::find(inputs.begin(), inputs.end(), "-") != inputs.end()) return directory_.get();
  const std::string plan = with_check(json_of(plan_of(name_, common_, options)));
  std::string stamped = plan;
  for (const std::string& input : inputs)
    if (!input.empty()) stamp(place_of(input), stamped);
  store_ = std::make_unique<PieceStore>(path, checksum(stamped));
  store_->set_plan(plan);
  store_->set_first_time([this] { directory_->lock(); });
  if (!store_->damage().empty()) note(common_, store_->damage());
  if (!resumed_.empty())
    note(common_,
         fmt::format("Going on with {} finished piece{}.", store_->found(), store_->found() == 1 ? "" : "s"));
  common_.job->keep_in(store_.get());
  set_kept(kept_of(*directory_, name_), (path / kPiecesFolder / "plan.json").string(),
           fmt::format("Stopped; '{}' has no results of this run.", path.string()));
  return directory_.get();
}

void KeptRun::finish() {
  common_.job->keep_nothing_more();
  store_.reset();
  if (directory_) remove_pieces(directory_->path());
}

KeptPieces::KeptPieces(const Common& common, const fs::path& directory, const std::string& plan)
    : job_(*common.job),
      store_(directory, checksum(fmt::format("{} {} {}\n{}", version(), commit(), instruction_set(), plan))) {
  if (!store_.damage().empty()) note(common, store_.damage());
  job_.keep_in(&store_);
}

KeptPieces::~KeptPieces() {
  job_.keep_in(nullptr);
}

void KeptPieces::finish() {
  job_.keep_nothing_more();
}

}  // namespace normscope::cli
