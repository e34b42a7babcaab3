#include "cli/common.h"

#include <fmt/core.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <thread>
#include <utility>

#include "cli/interrupt.h"
#include "cli/options.h"
#include "cluster/job.h"
#include "cluster/place.h"
#include "normscope/error.h"
#include "normscope/norm.h"
#include "run/finished.h"
#include "study/parse.h"

namespace normscope::cli {
namespace {

bool is_screen(int descriptor) {
  static const auto place = cluster::place_in_job([](const char* name) { return std::getenv(name); });
  return ::isatty(descriptor) == 1 && (!place || place->own_screen);
}

bool takes_escape_codes(int descriptor) {
  const char* terminal = std::getenv("TERM");
  return is_screen(descriptor) && (terminal == nullptr || std::string_view(terminal) != "dumb");
}

[[noreturn]] void fail_output() {
  if (errno == EPIPE) throw ReaderGone();
  const std::string reason = errno == 0 ? "an earlier write failed" : std::generic_category().message(errno);
  throw Error(fmt::format("Standard output cannot be written to: {}.", reason));
}

// Characters on screen: code points of UTF-8, without the codes of colours.
std::size_t width_of(std::string_view text) {
  std::size_t width = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\033')
      i = std::min(text.find('m', i), text.size() - 1);
    else if ((static_cast<unsigned char>(text[i]) & 0xC0) != 0x80)
      ++width;
  }
  return width;
}

bool numeric(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789.,+-eE%<> ±–") == std::string_view::npos;
}

}  // namespace

std::string duration(double seconds) {
  if (seconds > 0 && seconds < 0.95) return fmt::format("{:.1g}s", seconds);
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

Executor executor_of(const Common& common) {
  const std::size_t here = common.job->processes_here();
  const std::size_t machine = std::max(1U, std::thread::hardware_concurrency());
  const int threads = common.threads > 0 || here <= 1
                          ? common.threads
                          : static_cast<int>(std::max<std::size_t>(1, machine / here));
  return Executor(threads, common.stop, common.job->divides_work() ? common.job : nullptr);
}

bool speaks(const Common& common) {
  return common.job->first();
}

std::unique_ptr<RunDirectory> replaceable_directory(const Common& common,
                                                    std::initializer_list<std::string> inputs) {
  if (common.out.empty() || !speaks(common)) return nullptr;
  auto directory = normscope::replaceable_directory(common.out, inputs);
  set_kept(fmt::format("Stopped; '{}' has no results of this run.", common.out));
  return directory;
}

bool is_divisible(std::string_view command) {
  constexpr std::string_view divisible[] = {"keys",     "scan",       "vocab", "heatmap",
                                            "collapse", "equilibria", "train", "paper"};
  return std::find(std::begin(divisible), std::end(divisible), command) != std::end(divisible);
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
  if (common.quiet) return;
  const std::size_t room = screen_width(STDERR_FILENO).value_or(std::string::npos);
  std::fputs((wrapped(printable(text), room) + "\n").c_str(), stderr);
}

bool colour_output() {
  const char* no_colour = std::getenv("NO_COLOR");
  return takes_escape_codes(STDOUT_FILENO) && (no_colour == nullptr || *no_colour == '\0');
}

std::optional<std::size_t> screen_width(int descriptor) {
  constexpr std::size_t least = 1, most = 10'000;
  if (const char* columns = std::getenv("COLUMNS"); columns != nullptr) {
    std::size_t given = 0;
    const char* end = columns + std::strlen(columns);
    if (const auto read = std::from_chars(columns, end, given);
        read.ec == std::errc() && read.ptr == end && given >= least && given <= most)
      return given;
  }
  if (!is_screen(descriptor)) return std::nullopt;
  winsize size{};
  if (::ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col >= least) return size.ws_col;
  return 80;
}

std::size_t terminal_width() {
  return screen_width(STDOUT_FILENO).value_or(80);
}

std::string fitting_line(const std::vector<std::string>& forms, std::size_t width) {
  for (const std::string& form : forms)
    if (width_of(form) <= width) return form;
  std::string cut = forms.back();
  while (width_of(cut) > width) {
    do cut.pop_back();
    while (!cut.empty() && (static_cast<unsigned char>(cut.back()) & 0xC0) == 0x80);
    if (!cut.empty() && (static_cast<unsigned char>(cut.back()) & 0xC0) == 0xC0) cut.pop_back();
  }
  return cut;
}

Progress::Progress(const Common& common, std::string label, std::string unit, const Whole* whole)
    : label_(std::move(label)),
      unit_(std::move(unit)),
      whole_(whole),
      shown_(!common.quiet && takes_escape_codes(STDERR_FILENO)),
      told_(!common.quiet && !shown_ && common.job->processes() > 1 && speaks(common)),
      start_(Clock::now()),
      last_(start_),
      watch_(common.watch) {}

Progress::~Progress() {
  if (shown_) std::fputs("\r\x1b[K", stderr);
}

void Progress::update(std::size_t done, std::size_t total) {
  if (watch_ && total > 0) {
    const double part = static_cast<double>(std::min(done, total)) / static_cast<double>(total);
    watch_(whole_ == nullptr ? part : (whole_->before + part * whole_->part) / whole_->total);
  }
  if (!shown_ && !told_) return;
  const std::lock_guard lock(mutex_);
  const auto now = Clock::now();
  if (now - last_ < std::chrono::milliseconds(100)) return;
  last_ = now;
  const double seconds = std::chrono::duration<double>(now - start_).count();
  pace_.add(seconds, static_cast<double>(done));
  if (told_ && !lines_.due(seconds)) return;
  const double rate = pace_.rate();
  const std::string left =
      rate > 0 ? duration(static_cast<double>(total - std::min(done, total)) / rate) : "?";
  const std::string speed = fmt::format(" · {:.{}f}/s", rate, rate < 10 ? 1 : 0);
  const auto line = [&](std::string_view whole, bool unit, bool detail, bool fast) {
    return fmt::format("{}{} {}/{}{}{}{} · {} left", whole, label_, done, total, unit ? " " + unit_ : "",
                       detail ? detail_ : "", fast ? speed : "", left);
  };
  std::string whole;
  if (whole_ != nullptr && total > 0) {
    const double part = static_cast<double>(std::min(done, total)) / static_cast<double>(total);
    const double share = (whole_->before + part * whole_->part) / whole_->total;
    const double elapsed = std::chrono::duration<double>(now - whole_->start).count();
    whole = fmt::format("[{:.0f} % of all, {} left] ", 100 * share,
                        share > 0 ? duration(elapsed * (1 - share) / share) : "?");
  }
  if (told_) {
    std::fputs((line(whole, true, true, true) + "\n").c_str(), stderr);
    return;
  }
  // The last column stays free: some terminals go on to the next line there.
  const std::size_t room = screen_width(STDERR_FILENO).value_or(80) - 1;
  std::fputs(("\r\x1b[K" + fitting_line({line(whole, true, true, true), line(whole, true, true, false),
                                         line(whole, true, false, false), line("", true, false, false),
                                         line("", false, false, false)},
                                        room))
                 .c_str(),
             stderr);
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

void note_report(const Common& common, const RunDirectory& directory) {
  note(common, "Wrote " + (directory.path() / "report.html").string());
}

std::string table(const std::vector<std::vector<std::string>>& rows) {
  return table(rows, screen_width(STDOUT_FILENO).value_or(std::string::npos));
}

std::string table(const std::vector<std::vector<std::string>>& rows, std::size_t room) {
  constexpr std::size_t gap = 2, least = 8;
  if (room != std::string::npos) {
    std::size_t first = 0;
    for (const auto& row : rows) first = std::max(first, row.empty() ? 0 : width_of(row[0]));
    first = std::min(first, std::max(least, room / 2));
    const std::size_t other = std::max(least, room - std::min(room, first + gap));
    std::vector<std::vector<std::string>> shorter = rows;
    bool changed = false;
    for (auto& row : shorter) {
      for (std::size_t c = 0; c < row.size(); ++c) {
        const std::size_t most = c == 0 ? first : other;
        if (width_of(row[c]) <= most) continue;
        row[c] = fitting_line({row[c]}, most - 1) + "…";
        changed = true;
      }
    }
    if (changed) return table(shorter, room);
  }
  std::vector<std::size_t> widths;
  std::vector<bool> right;  // a column of numbers
  for (std::size_t r = 0; r < rows.size(); ++r) {
    for (std::size_t c = 0; c < rows[r].size(); ++c) {
      if (c == widths.size()) widths.push_back(0), right.push_back(rows.size() > 1);
      widths[c] = std::max(widths[c], width_of(rows[r][c]));
      if (r > 0 && !rows[r][c].empty() && !numeric(rows[r][c])) right[c] = false;
    }
  }
  std::string text;
  for (std::size_t begin = 1, end = 1; begin == 1 || begin < widths.size(); begin = end) {
    std::size_t taken = widths.empty() ? 0 : widths[0];
    while (end < widths.size() && (end == begin || taken + gap + widths[end] <= room))
      taken += gap + widths[end++];
    if (begin > 1) text += "\n";
    for (const auto& row : rows) {
      std::string line;
      const auto put = [&](std::size_t c) {
        if (c >= row.size()) return;
        const std::string padding(widths[c] - width_of(row[c]), ' ');
        if (c > 0) line += "  ";
        line += right[c] ? padding + row[c] : row[c] + padding;
      };
      put(0);
      for (std::size_t c = begin; c < end; ++c) put(c);
      line.erase(line.find_last_not_of(' ') + 1);
      text += line + "\n";
    }
    if (end >= widths.size()) break;
  }
  return text;
}

std::string wrapped(std::string_view sentence) {
  return wrapped(sentence, screen_width(STDOUT_FILENO).value_or(std::string::npos));
}

std::string labelled(std::string_view label, std::string_view text) {
  return labelled(label, text, screen_width(STDOUT_FILENO).value_or(std::string::npos));
}

std::string fitted_help(const std::string& help) {
  return fitted_help(help, screen_width(STDOUT_FILENO).value_or(std::string::npos));
}

std::string fitted_help(const std::string& help, std::size_t room) {
  constexpr std::size_t column = 30;  // where sentences begin
  std::string text;
  for (const std::string_view line : split(help, '\n')) {
    const bool entry = line.size() > column && line.starts_with("  ") && line[column - 1] == ' ';
    const std::string_view name = line.substr(0, entry ? line.find_last_not_of(' ', column - 1) + 1 : 0);
    text += entry ? labelled(name, line.substr(column), room, column) : wrapped(line, room) + "\n";
  }
  text.pop_back();
  return text;
}

std::string labelled(std::string_view label, std::string_view text, std::size_t room, std::size_t indent) {
  const std::size_t narrow = 2 * indent + 4;
  const std::string line = fmt::format("{:<{}}{}", label, indent, text);
  if (width_of(line) <= room) return line + "\n";
  // Where a third of the screen would be empty, what follows goes below.
  const std::size_t margin = room >= narrow ? indent : indent > 16 ? indent - 16 : 2;
  std::string lines = margin == indent ? line.substr(0, line.size() - text.size()) : std::string(label);
  if (margin < indent && !label.empty()) lines += "\n";
  bool first = margin == indent;
  const std::string body = wrapped(text, room - std::min(room, margin));
  for (const std::string_view each : split(body, '\n')) {
    if (!std::exchange(first, false)) lines += std::string(margin, ' ');
    lines += std::string(each) + "\n";
  }
  return lines;
}

std::string wrapped(std::string_view sentence, std::size_t room) {
  std::string text;
  for (const std::string_view line : split(sentence, '\n')) {
    if (line.data() != sentence.data()) text += '\n';
    std::size_t column = 0;
    bool first = true;
    for (const std::string_view word : split(line, ' ')) {
      const std::size_t size = width_of(word);
      if (!std::exchange(first, false)) {
        const bool fits = column + 1 + size <= room;
        text += fits ? ' ' : '\n';
        column = fits ? column + 1 : 0;
      }
      text += word;
      column += size;
    }
  }
  return text;
}

}  // namespace normscope::cli
