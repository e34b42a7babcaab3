// Names of norms: a projection, a scaling, `projection+scaling`, or one of the two compositions with a name.
#include <fmt/format.h>

#include <optional>
#include <string>
#include <vector>

#include "core/read_number.h"
#include "core/spelling.h"
#include "normscope/error.h"
#include "normscope/norm.h"

namespace normscope {
namespace {

// The last kWithNormals need normals.
constexpr std::string_view kNames[] = {"none", "layernorm", "rmsnorm", "center",   "unit",      "xsigma",
                                       "dyt",  "published", "qknorm",  "qknorm:h", "project:k", "normals:k"};
constexpr std::size_t kWithNormals = 2;

struct ScalingName {
  std::string_view name;
  Scaling scaling;
};
constexpr ScalingName kScalings[] = {
    {"rmsnorm", Scaling::root_dimension},
    {"unit", Scaling::unit},
    {"published", Scaling::inverse_root_dimension},
    {"xsigma", Scaling::standard_deviation},
    {"qknorm", Scaling::unit_per_head},
    {"dyt", Scaling::tanh},
};

[[noreturn]] void throw_unknown(std::string_view name, std::span<const std::string_view> offered) {
  std::vector<std::string> plain;
  std::string names;
  for (const std::string_view known : offered) {
    if (known.find(':') == std::string_view::npos) plain.emplace_back(known);
    names.append(names.empty() ? "" : ", ").append(known);
  }
  const auto meant = nearest_spelling(name, plain);
  throw InputError(fmt::format(
      "norm '{}' is not known{}; use one of {}, or projection+scaling such as center+unit ({}h heads)", name,
      meant ? fmt::format(" (did you mean '{}'?)", *meant) : "", names,
      offered.size() == std::size(kNames) ? "k normals, " : ""));
}

// The count after `prefix`, or nothing if `name` does not begin with it.
std::optional<int> count_after(std::string_view prefix, std::string_view what, std::string_view name) {
  if (!name.starts_with(prefix)) return std::nullopt;
  const int count = read_number<int>(name.substr(prefix.size())).value_or(0);
  if (count < 1) {
    throw InputError(fmt::format(
        "norm '{}': the number of {} must be a whole number of at least 1, as in {}2", name, what, prefix));
  }
  return count;
}

bool read_projection(std::string_view name, NormSpec& spec) {
  if (name == "center") {
    spec.projection = Projection::ones;
    return true;
  }
  const auto k = count_after("normals:", "normals", name);
  if (!k) return false;
  spec.projection = Projection::normals;
  spec.normals = *k;
  return true;
}

bool read_scaling(std::string_view name, NormSpec& spec) {
  for (const ScalingName& known : kScalings) {
    if (name == known.name) {
      spec.scaling = known.scaling;
      return true;
    }
  }
  const auto heads = count_after("qknorm:", "heads", name);
  if (!heads) return false;
  spec.scaling = Scaling::unit_per_head;
  spec.heads = *heads;
  return true;
}

std::string projection_name(const NormSpec& spec) {
  switch (spec.projection) {
    case Projection::none:
      return "";
    case Projection::ones:
      return "center";
    case Projection::normals:
      return fmt::format("normals:{}", spec.normals);
  }
  return "";
}

std::string scaling_name(const NormSpec& spec) {
  for (const ScalingName& known : kScalings) {
    if (spec.scaling != known.scaling) continue;
    const bool several_heads = spec.scaling == Scaling::unit_per_head && spec.heads != 1;
    return several_heads ? fmt::format("{}:{}", known.name, spec.heads) : std::string(known.name);
  }
  return "";
}

}  // namespace

NormSpec parse_norm(std::string_view name, std::span<const std::string_view> offered) {
  NormSpec spec;
  if (name == "none") return spec;
  if (name == "layernorm") return parse_norm("center+rmsnorm");
  if (const auto k = count_after("project:", "normals", name)) {
    spec.projection = Projection::normals;
    spec.normals = *k;
    spec.scaling = Scaling::root_dimension;
    return spec;
  }
  const std::size_t plus = name.find('+');
  const bool known = plus == std::string_view::npos ? read_projection(name, spec) || read_scaling(name, spec)
                                                    : read_projection(name.substr(0, plus), spec) &&
                                                          read_scaling(name.substr(plus + 1), spec);
  if (!known) throw_unknown(name, offered);
  return spec;
}

std::string name_of(const NormSpec& spec) {
  if (spec.scaling == Scaling::root_dimension && spec.projection == Projection::ones) return "layernorm";
  if (spec.scaling == Scaling::root_dimension && spec.projection == Projection::normals) {
    return fmt::format("project:{}", spec.normals);
  }
  const std::string projection = projection_name(spec), scaling = scaling_name(spec);
  if (projection.empty() && scaling.empty()) return "none";
  if (projection.empty() || scaling.empty()) return projection + scaling;
  return projection + "+" + scaling;
}

std::span<const std::string_view> norm_names() {
  return kNames;
}

std::span<const std::string_view> norm_names_without_normals() {
  return std::span(kNames).first(std::size(kNames) - kWithNormals);
}

}  // namespace normscope
