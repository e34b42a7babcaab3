// The collapse view: tokens passing through layers, every layer measured, and where they stand. What the page
// calls:
//
//   collapse({tokens, dim, layers, mask, variant, norm, placement, temperature, queryKey, value, start,
//   seed})
//
// All in double, one head, W_O = I, no dropout: `normscope collapse --precision float64` with the same
// options gives the same measures. temperature 0: d.
#include "normscope/collapse.h"

#include <Eigen/Eigenvalues>
#include <algorithm>
#include <cmath>
#include <string>

#include "bridge.h"
#include "normscope/norm.h"

namespace normscope::web {
namespace {

// A picture and its curves must come while a hand is on the slider.
constexpr std::size_t kMostTokens = 64, kMostDimensions = 64, kMostLayers = 200;
constexpr std::size_t kShownDimensions = 3;

Placement placement_of(const std::string& name) {
  if (name == "post") return Placement::post;
  if (name == "pre") return Placement::pre;
  if (name == "sandwich") return Placement::sandwich;
  throw InputError("There is no placement '" + name + "'; there are post, pre and sandwich.");
}

CollapseCase case_of(const val& options, std::size_t tokens, std::uint64_t seed) {
  CollapseCase result;
  result.group = options["variant"].as<std::string>();
  result.name = options["mask"].as<std::string>();
  result.mask = parse_mask(result.name, tokens, seed);
  BlockSpec block;
  block.width = count_of(options, "dim", "dimensions", 2, kMostDimensions);
  block.feed_forward = 4 * block.width;
  block.norm = parse_norm(options["norm"].as<std::string>(), norm_names_without_normals());
  block.placement = placement_of(options["placement"].as<std::string>());
  block.temperature = options["temperature"].as<double>();
  result.block = variant_of(result.group, block);
  require_valid(result.block);
  return result;
}

CollapseSettings settings_of(const val& options, std::size_t tokens, std::uint64_t seed) {
  CollapseSettings settings;
  settings.tokens = tokens;
  settings.layers = count_of(options, "layers", "layers", 1, kMostLayers);
  settings.weights.query_key = parse_matrix_init(options["queryKey"].as<std::string>());
  settings.weights.value = parse_matrix_init(options["value"].as<std::string>());
  settings.weights.output = parse_matrix_init("identity");
  settings.weights.feed_forward = parse_matrix_init("gaussian");
  settings.start = parse_token_start(options["start"].as<std::string>());
  settings.precision = Precision::float64;
  settings.seed = seed;
  return settings;
}

val measures_of(const CollapseCurve& curve) {
  val measures = val::object();
  const auto names = TokenMeasures::names();
  for (std::size_t m = 0; m < names.size(); ++m) {
    std::vector<double> values;
    for (std::size_t layer = 0; layer < curve.layers.size(); ++layer)
      values.push_back(curve.summary(layer).mean[m]);
    measures.set(std::string(names[m]), numbers(values));
  }
  return measures;
}

val theorem_of(const std::vector<Assumption>& assumptions, const std::vector<double>& bound,
               std::size_t violations) {
  val list = val::array();
  for (const Assumption& each : assumptions) {
    val assumption = val::object();
    assumption.set("name", each.name);
    assumption.set("met", each.met);
    assumption.set("detail", each.detail);
    list.call<void>("push", assumption);
  }
  val result = val::object();
  result.set("assumptions", list);
  result.set("bound", bound.empty() ? val::null() : numbers(bound));
  result.set("violations", static_cast<double>(violations));
  return result;
}

val theory_of(const CollapseTheory& theory) {
  val result = val::object();
  result.set("epsilon", theory.epsilon);
  result.set("theorem1", theorem_of(theory.theorem1, theory.bound1, theory.violations1));
  result.set("theorem2Diameter",
             theorem_of(theory.theorem2, theory.bound2_diameter, theory.violations2_diameter));
  result.set("theorem2Radius", theorem_of(theory.theorem2, theory.bound2_radius, theory.violations2_radius));
  result.set("corollary1",
             theorem_of(theory.corollary1, theory.bound_corollary, theory.violations_corollary));
  return result;
}

val mask_of(const Mask& mask) {
  const MaskProperties properties = mask_properties(mask);
  std::vector<std::uint8_t> allowed(mask.n() * mask.n());
  for (std::size_t i = 0; i < mask.n(); ++i) {
    for (const Mask::Run& run : mask.row(i)) {
      for (std::size_t j = run.first; j < run.last; ++j) allowed[i * mask.n() + j] = 1;
    }
  }
  val result = val::object();
  result.set("allowed",
             val::global("Uint8Array").new_(emscripten::typed_memory_view(allowed.size(), allowed.data())));
  result.set("edges", static_cast<double>(properties.edges));
  result.set("centres", static_cast<double>(properties.centres.size()));
  result.set("radius", properties.radius ? val(static_cast<double>(*properties.radius)) : val::null());
  result.set("diameter", properties.diameter ? val(static_cast<double>(*properties.diameter)) : val::null());
  return result;
}

// What `collapse` measures is not kept by it: the same layers again, keeping tokens and attention.
struct Passed {
  std::vector<Matrix<double>> tokens;  // layers + 1
  std::vector<float> attention;        // layers × N × N
};

Passed pass(const CollapseCase& each, const CollapseSettings& settings, const Executor& executor) {
  Passed passed;
  const std::size_t d = each.block.width;
  Matrix<double> x = draw_tokens(settings.start, settings.tokens, d, 0, settings.seed);
  passed.tokens.push_back(x);
  BlockForward<double> forward;
  for (std::size_t layer = 0; layer < settings.layers; ++layer) {
    const auto weights =
        draw_weights<double>(settings.weights, d, each.block.feed_forward, layer, settings.seed, executor);
    Matrix<double> h = x;  // what attention sees
    if (each.block.placement != Placement::post)
      norm_forward<double>(each.block.norm, {}, x.view(), h.view());
    const Matrix<double> attention = attention_matrix<double>(each.block, weights, each.mask, h.view(), 0);
    for (const double weight : attention.values()) passed.attention.push_back(static_cast<float>(weight));
    forward.apply(each.block, weights, each.mask, x.view());
    passed.tokens.push_back(x);
  }
  return passed;
}

double length_of(std::span<const double> row) {
  double square = 0;
  for (const double value : row) square += value * value;
  return std::sqrt(square);
}

// Axes to look along: those of the space for d ≤ 3, else the principal directions of all tokens of all
// layers, each token scaled to norm 1 (eigenvectors of Σ u uᵀ), and the share of the squared lengths they
// show.
struct Frame {
  Eigen::MatrixXd axes;  // d × shown
  double share = 1;
};

Frame frame_of(const std::vector<Matrix<double>>& layers) {
  const auto d = static_cast<Eigen::Index>(layers.front().cols());
  if (layers.front().cols() <= kShownDimensions) return {Eigen::MatrixXd::Identity(d, d), 1};
  Eigen::MatrixXd moments = Eigen::MatrixXd::Zero(d, d);
  for (const Matrix<double>& tokens : layers) {
    for (std::size_t i = 0; i < tokens.rows(); ++i) {
      const double length = length_of(tokens[i]);
      if (!(length > 0)) continue;
      const Eigen::Map<const Eigen::VectorXd> row(tokens[i].data(), d);
      moments += (row / length) * (row / length).transpose();
    }
  }
  const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solver(moments);  // eigenvalues rise
  const Eigen::Index shown = kShownDimensions;
  const double total = solver.eigenvalues().sum();
  return {solver.eigenvectors().rightCols(shown).rowwise().reverse(),
          total > 0 ? solver.eigenvalues().tail(shown).sum() / total : 1};
}

// Per layer, token and axis: the token over its own length (a zero row stays 0), or over that of the longest
// token of its layer.
std::vector<double> placed(const std::vector<Matrix<double>>& layers, const Frame& frame, bool own_length) {
  std::vector<double> result;
  for (const Matrix<double>& tokens : layers) {
    double longest = 0;
    for (std::size_t i = 0; i < tokens.rows(); ++i) longest = std::max(longest, length_of(tokens[i]));
    for (std::size_t i = 0; i < tokens.rows(); ++i) {
      const double length = own_length ? length_of(tokens[i]) : longest;
      const Eigen::Map<const Eigen::VectorXd> row(tokens[i].data(), static_cast<Eigen::Index>(tokens.cols()));
      const Eigen::VectorXd at = frame.axes.transpose() * row;
      for (const double value : at) result.push_back(length > 0 ? value / length : 0.0);
    }
  }
  return result;
}

val collapse_view(const val& options) {
  return answer([&] {
    const std::size_t tokens = count_of(options, "tokens", "tokens", 2, kMostTokens);
    const std::uint64_t seed = seed_of(options);
    const CollapseCase each = case_of(options, tokens, seed);
    const CollapseSettings settings = settings_of(options, tokens, seed);
    const Executor executor(1);
    const CollapseCurve curve = collapse({each}, settings, executor).front();
    const Passed passed = pass(each, settings, executor);
    const Frame frame = frame_of(passed.tokens);

    val rate = val::object();
    rate.set("factor", curve.rate.factor);
    rate.set("layers", static_cast<double>(curve.rate.layers));
    val result = val::object();
    result.set("measures", measures_of(curve));
    result.set("leastWeight", numbers(curve.least_weight));
    result.set("entropy", numbers(curve.entropy));
    result.set("emptyRows", static_cast<double>(curve.empty_rows));
    result.set("undefinedRows", static_cast<double>(curve.norm.undefined_rows()));
    result.set("rate", rate);
    result.set("theory", theory_of(curve.theory));
    result.set("mask", mask_of(each.mask));
    result.set("attention",
               val::global("Float32Array")
                   .new_(emscripten::typed_memory_view(passed.attention.size(), passed.attention.data())));
    result.set("axes", static_cast<double>(frame.axes.cols()));
    result.set("shownShare", frame.share);
    result.set("directions", numbers(placed(passed.tokens, frame, true)));
    result.set("positions", numbers(placed(passed.tokens, frame, false)));
    result.set("norm", name_of(each.block.norm));
    result.set("temperature", each.block.score_scale() > 0
                                  ? 1 / (each.block.score_scale() * each.block.score_scale())
                                  : 0.0);
    return result;
  });
}

val names_of(std::span<const std::string_view> names) {
  val list = val::array();
  for (const std::string_view name : names) list.call<void>("push", std::string(name));
  return list;
}

val variants() {
  return names_of(variant_names());
}

}  // namespace
}  // namespace normscope::web

EMSCRIPTEN_BINDINGS(collapse) {
  emscripten::function("collapse", &normscope::web::collapse_view);
  emscripten::function("collapseVariants", &normscope::web::variants);
}
