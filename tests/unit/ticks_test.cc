// The drawing kit of the page and of the reports' script (web/src/kit) sets ticks and chooses dashes as the
// figures do: tests/golden/drawing.json holds what C++ draws, and tests/browser/kit_test.mjs compares the kit
// with it.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "report/draw.h"
#include "support/paths.h"

namespace normscope {
namespace {

using Json = nlohmann::json;

// Raised digits after "^".
std::string label(const std::string& markup) {
  const std::size_t tag = markup.find("<tspan");
  if (tag == std::string::npos) return markup;
  const std::size_t begin = markup.find('>', tag) + 1;
  return markup.substr(0, tag) + "^" + markup.substr(begin, markup.find('<', begin) - begin);
}

// [low, high, "log" or "linear", [labels across 430 pixels], [labels up 260 pixels]]
std::string axis(double low, double high, bool log) {
  Json row = {low, high, log ? "log" : "linear"};
  for (const bool horizontal : {true, false}) {
    Json labels = Json::array();
    for (const draw::Tick& tick : draw::ticks({low, high, log, 0, horizontal ? 430.0 : 260.0}, horizontal)) {
      labels.push_back(label(tick.markup));
    }
    row.push_back(labels);
  }
  return row.dump();
}

// Ranges of every size, about zero and far from it, round and not.
std::string drawing() {
  Json colours, dashes;
  for (std::size_t i = 0; i < 7; ++i) colours.push_back(draw::colour(i));
  for (std::size_t i = 0; i < 8; ++i) dashes.push_back(draw::dash(i));
  std::string axes;
  const auto add = [&](double low, double high, bool log) {
    axes += (axes.empty() ? "" : ",\n") + axis(low, high, log);
  };
  for (const bool log : {false, true}) {
    for (const int power : {-290, -12, -7, -6, -5, -4, -3, 0, 2, 5, 6, 7, 40, 290}) {
      for (const double part : {1.0, 3.7}) {
        const double low = part * std::pow(10.0, power);
        for (const double factor : {1.0001, 1.3, 17.0, 1000.0, 3e7}) add(low, low * factor, log);
      }
    }
    add(1e-300, 1e300, log);
    add(1e-12, 1, log);
  }
  for (const double high : {1e-9, 0.00004, 0.0003, 0.7, 1.0, 25.0, 20'000.0, 3e6, 1e7, 4e22, 1e300}) {
    add(0, high, false);
    add(-high, high, false);
    add(-0.37 * high, high / 7, false);
  }
  return "{\n\"colours\": " + colours.dump() + ",\n\"dashes\": " + dashes.dump() + ",\n\"axes\": [\n" + axes +
         "\n]\n}\n";
}

TEST(Ticks, AreThoseRecordedForTheDrawingKit) {
  const std::string path = source_path() + "/tests/golden/drawing.json";
  const std::string text = drawing();
  if (std::getenv("NORMSCOPE_RECORD") != nullptr) std::ofstream(path, std::ios::binary) << text;
  std::ifstream file(path, std::ios::binary);
  const std::string recorded((std::istreambuf_iterator<char>(file)), {});
  EXPECT_TRUE(recorded == text)
      << path << " is not what is drawn now; if the change is meant, record it with "
      << "NORMSCOPE_RECORD=1 and let web/src/kit follow (tests/browser/kit_test.mjs)";
}

}  // namespace
}  // namespace normscope
