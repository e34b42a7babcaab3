// The schemas in docs/ are what results say of themselves.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>

#include "result/ablate.h"
#include "result/collapse.h"
#include "result/equilibria.h"
#include "result/heatmap.h"
#include "result/keys.h"
#include "result/mask.h"
#include "result/paper.h"
#include "result/scan.h"
#include "result/schema.h"
#include "result/training.h"
#include "result/vocab.h"
#include "support/paths.h"

namespace normscope {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kWidth = 160;

// Objects that occur several times stand once, in $defs.
class SharedObjects {
 public:
  explicit SharedObjects(Json& schema) {
    for (Json& each : schema) count(each);
    for (Json& each : schema) replace(each, "");
    if (!definitions_.empty()) schema["$defs"] = definitions_;
  }

 private:
  struct Shared {
    std::size_t times = 0;
    std::string name = {};
  };
  static std::string text_of(Json object) {
    object.erase("description");
    return object.dump();
  }
  static bool is_object(const Json& json) { return json.is_object() && json.contains("properties"); }
  void count(const Json& json) {
    if (is_object(json) && json.contains("type")) ++objects_[text_of(json)].times;
    if (json.is_structured())
      for (const Json& each : json) count(each);
  }
  void replace(Json& json, const std::string& name) {
    const auto found = is_object(json) ? objects_.find(text_of(json)) : objects_.end();
    const bool shared = found != objects_.end() && found->second.times > 1;
    if (shared && !found->second.name.empty()) return refer(json, found->second.name);
    if (shared) found->second.name = definitions_.contains(name) ? name + "_" : name;
    if (json.is_structured())
      for (const auto& [inner, each] : json.items())
        replace(each, inner == "items" || inner == "properties" || !json.is_object() ? name : inner);
    if (!shared) return;
    Json definition = json;
    definition.erase("description");
    definitions_[found->second.name] = std::move(definition);
    refer(json, found->second.name);
  }
  static void refer(Json& json, const std::string& name) {
    Json reference = Json::object();
    if (json.contains("description")) reference["description"] = json["description"];
    reference["$ref"] = "#/$defs/" + name;
    json = std::move(reference);
  }

  std::map<std::string, Shared> objects_;
  Json definitions_ = Json::object();
};

std::string in_one_line(const Json& json) {
  if (!json.is_structured() || json.empty()) return json.dump();
  std::string text;
  for (const auto& [name, each] : json.items())
    text +=
        (text.empty() ? "" : ", ") + (json.is_object() ? Json(name).dump() + ": " : "") + in_one_line(each);
  return json.is_object() ? "{ " + text + " }" : "[" + text + "]";
}

// Lines only where they are needed, so that people can read it, too. used: columns before it in its line.
std::string in_lines(const Json& json, std::size_t indent, std::size_t used) {
  const bool words =
      std::none_of(json.begin(), json.end(), [](const Json& each) { return each.is_structured(); });
  if (std::string line = in_one_line(json); (words && !json.is_object()) || used + line.size() < kWidth)
    return line;
  const std::string margin(indent + 2, ' ');
  std::string text;
  for (const auto& [name, each] : json.items()) {
    const std::string before = margin + (json.is_object() ? Json(name).dump() + ": " : "");
    text += (text.empty() ? "" : ",\n") + before + in_lines(each, indent + 2, before.size());
  }
  return (json.is_object() ? "{\n" : "[\n") + text + "\n" + std::string(indent, ' ') +
         (json.is_object() ? "}" : "]");
}

template <class Result>
void expect_current(const std::string& command, const std::string& sentence, const Result& example = {}) {
  std::string name = command;
  std::replace(name.begin(), name.end(), ' ', '-');
  const std::string file = "docs/" + name + ".schema.json", path = source_path() + "/" + file;
  Json schema = schema_of<Result>("normscope " + command + " --json", sentence, example);
  const SharedObjects shared(schema);
  const std::string text = in_lines(schema, 0, 0) + "\n";
  if (std::getenv("NORMSCOPE_WRITE_SCHEMAS") != nullptr) std::ofstream(path) << text;
  std::ifstream stream(path);
  EXPECT_TRUE(text == std::string(std::istreambuf_iterator<char>(stream), {}))
      << file << " is not what the result says of itself any more. This writes it anew:\n"
      << "NORMSCOPE_WRITE_SCHEMAS=1 build/tests/unit_tests --gtest_filter='Schemas.*'";
}

TEST(Schemas, InDocsAreWhatResultsSayOfThemselves) {
  expect_current<KeysResult>("keys", "Verdict, margin or depth, and certificate of every key.");
  expect_current<ScanResult>("scan", "Which tokens of a text the layers and heads of a model can select.");
  expect_current<VocabResult>("vocab", "Which tokens of a vocabulary a model can put on top.");
  expect_current<AblateResult>("ablate",
                               "A trained model with another norm, or none, in front of attention.");
  expect_current<HeatmapResult>("heatmap", "How often random keys are unselectable.");
  expect_current<MasksResult>("mask", "Attention masks as graphs.");
  expect_current<CollapseResult>("collapse", "How fast tokens become alike with depth.");
  expect_current<EquilibriaResult>(
      "equilibria", "Where tokens end under causal attention with a norm, and from which starts.");
  expect_current<MajorityResult>("train majority", "Runs of the majority task, and their means over seeds.");
  expect_current("train lm", "Runs of a language model, and their means over seeds.",
                 TextResult::of_a_language_model());
  expect_current("train sentiment", "Runs of a classifier of texts, and their means over seeds.",
                 TextResult::of_a_classifier());
  expect_current<PaperResult>("paper", "Published claims beside what was measured.");
}

}  // namespace
}  // namespace normscope
