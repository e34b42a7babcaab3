#include "cli/common.h"

#include <fmt/core.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <system_error>

#include "cli/interrupt.h"
#include "cli/options.h"
#include "normscope/error.h"
#include "normscope/norm.h"
#include "record/json.h"

namespace normscope::cli {
namespace {

bool takes_escape_codes(int descriptor) {
  const char* terminal = std::getenv("TERM");
  return ::isatty(descriptor) == 1 && (terminal == nullptr || std::string_view(terminal) != "dumb");
}

[[noreturn]] void fail_output() {
  const std::string reason = errno == 0 ? "an earlier write failed" : std::generic_category().message(errno);
  throw Error(fmt::format("Standard output cannot be written to: {}.", reason));
}

// Characters on screen: code points of UTF-8.
std::size_t width(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(
      text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

bool numeric(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789.,+-eE% ±–") == std::string_view::npos;
}

}  // namespace

std::string duration(double seconds) {
  const auto whole = std::llround(std::min(seconds, 1e9));
  if (whole < 60) return fmt::format("{}s", whole);
  if (whole < 3600) return fmt::format("{}m{:02}s", whole / 60, whole % 60);
  return fmt::format("{}h{:02}m", whole / 3600, whole / 60 % 60);
}

std::string norm_list() {
  std::string names;
  for (const std::string_view name : norm_names())
    names += fmt::format("{}{}", names.empty() ? "" : " ", name);
  return names;
}

CLI::App* add_plain_command(CLI::App& app, const std::string& name, const std::string& description,
                            const std::vector<std::string>& examples) {
  CLI::App* command = app.add_subcommand(name, description);
  std::string footer = examples.empty() ? "" : "Examples:";
  for (const std::string& example : examples) footer += "\n  normscope " + example;
  command->footer(footer);
  return command;
}

CLI::App* add_command(CLI::App& app, Common& common, const std::string& name, const std::string& description,
                      const std::vector<std::string>& examples) {
  CLI::App* command = add_plain_command(app, name, description, examples);
  add_options(*command, common, "Common options");
  return command;
}

CLI::App* add_commands(CLI::App& app, const std::string& name, const std::string& description) {
  CLI::App* commands = app.add_subcommand(name, description);
  commands->require_subcommand(1);
  return commands;
}

std::unique_ptr<RunDirectory> replaceable_directory(const Common& common) {
  if (common.out.empty()) return nullptr;
  const std::string held = command_of(common.out);
  if (held == "paper" || held.starts_with("train ")) {
    throw InputError(fmt::format(
        "'{}' holds a run of 'normscope {}', over which nothing is written; name a new directory.",
        common.out, held));
  }
  auto directory = std::make_unique<RunDirectory>(common.out);
  set_kept(fmt::format("Stopped; '{}' has no results of this run.", common.out));
  return directory;
}

bool resumes(const CLI::App& command, std::initializer_list<std::string_view> allowed) {
  constexpr std::string_view harmless[] = {"--resume", "--threads", "--json", "--quiet"};
  const bool resume = command.get_option("--resume")->count() > 0;
  for (const CLI::Option* option : command.get_options()) {
    if (option->count() == 0) continue;
    const std::string name = option->get_name();
    const auto is_name = [&](std::string_view other) { return other == name; };
    if (option->get_items_expected_min() > 0 && option->results().front().empty())
      throw InputError(fmt::format("{} needs a value, not an empty one.", name));
    if (resume && std::none_of(std::begin(harmless), std::end(harmless), is_name) &&
        std::none_of(allowed.begin(), allowed.end(), is_name)) {
      throw InputError(
          fmt::format("--resume goes on with the settings of the run; {} cannot be given with it.", name));
    }
  }
  return resume;
}

void print(std::string_view text) {
  errno = 0;
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size()) fail_output();
}

void flush_output() {
  errno = 0;
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) fail_output();
}

void note(const Common& common, std::string_view text) {
  if (!common.quiet) std::fputs((printable(text) + "\n").c_str(), stderr);
}

bool colour_output() {
  const char* no_colour = std::getenv("NO_COLOR");
  return takes_escape_codes(STDOUT_FILENO) && (no_colour == nullptr || *no_colour == '\0');
}

std::size_t terminal_width() {
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col >= 20) return size.ws_col;
  return 80;
}

Progress::Progress(const Common& common, std::string label, std::string unit, const Whole* whole)
    : label_(std::move(label)),
      unit_(std::move(unit)),
      whole_(whole),
      shown_(!common.quiet && takes_escape_codes(STDERR_FILENO)),
      start_(Clock::now()),
      last_(start_) {}

Progress::~Progress() {
  if (shown_) std::fputs("\r\x1b[K", stderr);
}

void Progress::update(std::size_t done, std::size_t total) {
  if (!shown_) return;
  const std::lock_guard lock(mutex_);
  const auto now = Clock::now();
  if (now - last_ < std::chrono::milliseconds(100)) return;
  last_ = now;
  const double seconds = std::chrono::duration<double>(now - start_).count();
  const double rate = static_cast<double>(done) / seconds;
  const std::string left =
      done == 0 ? "?" : duration(static_cast<double>(total - std::min(done, total)) / rate);
  std::string line = fmt::format("{} {}/{} {}{} · {:.{}f}/s · {} left", label_, done, total, unit_, detail_,
                                 rate, rate < 10 ? 1 : 0, left);
  if (whole_ != nullptr && total > 0) {
    const double part = static_cast<double>(std::min(done, total)) / static_cast<double>(total);
    const double share = (whole_->before + part * whole_->part) / whole_->total;
    const double elapsed = std::chrono::duration<double>(now - whole_->start).count();
    line = fmt::format("[{:.0f} % of all, {} left] {}", 100 * share,
                       share > 0 ? duration(elapsed * (1 - share) / share) : "?", line);
  }
  std::fputs(("\r\x1b[K" + line).c_str(), stderr);
}

void Progress::set_detail(std::string detail) {
  const std::lock_guard lock(mutex_);
  detail_ = " · " + std::move(detail);
}

Context context_of(const Common& common, const Executor& executor, Progress* progress) {
  Context context{executor, common.seed, {}, [&](std::string_view text) { note(common, text); }, {}};
  if (progress != nullptr) {
    context.progress = [=](std::size_t done, std::size_t total) { progress->update(done, total); };
    context.detail = [=](std::string_view text) { progress->set_detail(std::string(text)); };
  }
  return context;
}

std::string table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths;
  std::vector<bool> right;  // a column of numbers
  for (std::size_t r = 0; r < rows.size(); ++r) {
    for (std::size_t c = 0; c < rows[r].size(); ++c) {
      if (c == widths.size()) widths.push_back(0), right.push_back(rows.size() > 1);
      widths[c] = std::max(widths[c], width(rows[r][c]));
      if (r > 0 && !rows[r][c].empty() && !numeric(rows[r][c])) right[c] = false;
    }
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t c = 0; c < row.size(); ++c) {
      const std::string padding(widths[c] - width(row[c]), ' ');
      if (c > 0) line += "  ";
      line += right[c] ? padding + row[c] : row[c] + padding;
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

}  // namespace normscope::cli
