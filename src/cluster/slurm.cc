#include "cluster/slurm.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <string_view>

#include "core/printable.h"
#include "normscope/error.h"
#include "record/run_lock.h"

namespace normscope {
namespace {

std::string slurm_time(double seconds) {
  const auto whole = static_cast<long>(std::ceil(seconds));
  return fmt::format("{:02}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
}

// A word as a shell takes it.
std::string quoted(const std::string& word) {
  constexpr std::string_view plain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=:,./@%";
  if (!word.empty() && word.find_first_not_of(plain) == std::string::npos) return word;
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

std::string line_of(const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& word : words) line += (line.empty() ? "" : " ") + quoted(word);
  return line;
}

}  // namespace

double parse_slurm_time(const std::string& text, const char* option) {
  const auto wrong = [&] {
    return InputError(
        fmt::format("{} takes a time such as 24:00:00 or 2-12:00:00, not '{}'.", option, printable(text)));
  };
  const auto number = [&](std::string_view part) {
    unsigned value = 0;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), value);
    if (error != std::errc() || end != part.data() + part.size() || value > 1'000'000) throw wrong();
    return static_cast<double>(value);
  };
  double days = 0;
  std::string_view rest = text;
  if (const std::size_t dash = rest.find('-'); dash != rest.npos) {
    days = number(rest.substr(0, dash));
    rest.remove_prefix(dash + 1);
  }
  std::vector<double> parts;
  for (bool more = true; more;) {
    const std::size_t colon = std::min(rest.find(':'), rest.size());
    parts.push_back(number(rest.substr(0, colon)));
    more = colon < rest.size();
    rest.remove_prefix(more ? colon + 1 : colon);
  }
  double seconds = 0;
  if (parts.size() == 1)
    seconds = 60 * parts[0];
  else if (parts.size() == 2)
    seconds = 60 * parts[0] + parts[1];
  else if (parts.size() == 3)
    seconds = 3600 * parts[0] + 60 * parts[1] + parts[2];
  else
    throw wrong();
  seconds += 86400 * days;
  if (!(seconds > 0)) throw wrong();
  return seconds;
}

std::string slurm_memory(const std::string& text, std::size_t tasks) {
  std::size_t size = 0;
  const auto [unit, error] = std::from_chars(text.data(), text.data() + text.size(), size);
  const std::string_view rest(unit, text.data() + text.size());
  if (error != std::errc() || size < 1 || size > 1'000'000'000 ||
      (rest != "" && rest != "K" && rest != "M" && rest != "G" && rest != "T"))
    throw InputError(fmt::format("--memory takes a size such as 800M or 4G, not '{}'.", printable(text)));
  return fmt::format("{}{}", tasks * size, rest);
}

std::string slurm_script(const SlurmJob& job) {
  const bool training = job.words[0] == "train";
  std::string name = job.words[0];
  if (training && job.words.size() > 1) name += " " + job.words[1];
  std::string job_name = name;
  std::replace(job_name.begin(), job_name.end(), ' ', '-');
  const auto jobs = static_cast<std::size_t>(std::ceil(job.seconds / job.limit));
  std::string text = "#!/bin/bash\n";
  text += fmt::format("#SBATCH --job-name=normscope-{}\n", job_name);
  text += fmt::format("#SBATCH --nodes={}\n#SBATCH --ntasks-per-node={}\n#SBATCH --cpus-per-task={}\n",
                      job.nodes, job.tasks, job.threads);
  text += fmt::format("#SBATCH --mem={}\n", job.memory);
  text += fmt::format("#SBATCH --time={}\n", slurm_time(std::min(job.limit, job.seconds)));
  if (jobs > 1) text += fmt::format("#SBATCH --array=1-{}%1\n", jobs + 1);
  text += fmt::format("# {}\n", job.why);
  if (jobs > 1)
    text += fmt::format(
        "# Longer than {}: jobs one after the other, each goes on where the one before ended; one is to spare.\n",
        slurm_time(job.limit));
  const std::string start = fmt::format("{} normscope", job.launcher), threads = std::to_string(job.threads);
  std::vector<std::string> first = job.words;
  first.insert(first.end(), {"--out", job.out, "--threads", threads, "--quiet"});
  const std::string kept =
      fmt::format("{}/{}", job.out, training || name == "paper" ? "config.json" : "pieces/plan.json");
  text += fmt::format("set -eu\ncd {}\n", quoted(std::filesystem::current_path().string()));
  text += fmt::format(
      "# A job that was killed on another machine has locked the directory for five minutes.\n"
      "for wait in {{1..20}}; do\n  [ -n \"$(find {0} -mmin -6 2>/dev/null)\" ] || break\n"
      "  ! grep -q \"^$(hostname) \" {0} || break\n  sleep 20\ndone\n",
      quoted(fmt::format("{}/{}", job.out, kLockFile)));
  text += fmt::format(  // the page is a run's last file
      "if [ -e {} ]; then\n  echo 'This run has ended.'\nelif [ -e {} ]; then\n  {} {} --resume {} "
      "--threads {} --quiet\nelse\n  {} {}\nfi\n",
      quoted(job.out + "/report.html"), quoted(kept), start, name, quoted(job.out), threads, start,
      line_of(first));
  return text;
}

}  // namespace normscope
