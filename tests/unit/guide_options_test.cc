// The option tables of the guide's pages are what options say of themselves.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "cli/calls.h"
#include "cli/common.h"
#include "fetch/data.h"
#include "report/report_options.h"
#include "result/option_table.h"
#include "serve/site.h"
#include "study/ablate.h"
#include "study/equilibria.h"
#include "study/keys.h"
#include "study/scan.h"
#include "study/train_majority.h"
#include "study/train_text.h"
#include "study/vocab.h"
#include "support/message.h"
#include "support/paths.h"

namespace normscope {
namespace {

struct GuidePage {
  std::string path, text;
};

std::vector<GuidePage> guide_pages() {
  std::vector<GuidePage> pages;
  for (const auto& entry : std::filesystem::directory_iterator(source_path() + "/docs")) {
    if (entry.path().extension() != ".md") continue;
    std::ifstream stream(entry.path());
    pages.push_back({entry.path().string(), std::string(std::istreambuf_iterator<char>(stream), {})});
  }
  return pages;
}

// On one page of docs/ the table of a command stands between two comments on lines of their own:
// <!-- options of keys --> and <!-- end of options -->.
template <class Options>
void expect_current(const std::string& command) {
  const std::string begin = "<!-- options of " + command + " -->\n", end = "<!-- end of options -->\n";
  const std::vector<GuidePage> pages = guide_pages();
  const auto holds = [&](const GuidePage& page) { return page.text.find(begin) != std::string::npos; };
  ASSERT_EQ(std::count_if(pages.begin(), pages.end(), holds), 1)
      << "as many pages of docs/ have the line '" << begin.substr(0, begin.size() - 1) << "'";
  const GuidePage& page = *std::find_if(pages.begin(), pages.end(), holds);
  const std::size_t from = page.text.find(begin) + begin.size(), to = page.text.find(end, from);
  ASSERT_NE(to, std::string::npos) << page.path << " has no line '<!-- end of options -->' after it";
  const std::string current =
      page.text.substr(0, from) + "\n" + option_table<Options>() + "\n" + page.text.substr(to);
  if (std::getenv("NORMSCOPE_WRITE_SCHEMAS") != nullptr) {
    std::ofstream(page.path) << current;
    return;
  }
  EXPECT_TRUE(page.text == current)
      << "The options of " << command << " in " << page.path
      << " are not what they say of themselves any more. This writes them anew:\n"
         "NORMSCOPE_WRITE_SCHEMAS=1 build/tests/unit_tests --gtest_filter='Schemas.*:GuideOptions.*'";
}

TEST(GuideOptions, AreWhatOptionsSayOfThemselves) {
  expect_current<cli::Common>("every command");
  expect_current<cli::KeptCall<KeysOptions>>("keys");
  expect_current<cli::KeptCall<ScanOptions>>("scan");
  expect_current<cli::KeptCall<VocabOptions>>("vocab");
  expect_current<AblateOptions>("ablate");
  expect_current<cli::HeatmapCall>("heatmap");
  expect_current<cli::MaskCall>("mask");
  expect_current<cli::CollapseCall>("collapse");
  expect_current<cli::KeptCall<EquilibriaOptions>>("equilibria");
  expect_current<cli::TrainingCall<MajorityOptions>>("train majority");
  expect_current<cli::TrainingCall<LanguageOptions>>("train lm");
  expect_current<cli::TrainingCall<SentimentOptions>>("train sentiment");
  expect_current<cli::PaperCall>("paper");
  expect_current<cli::SubmitCall>("submit");
  expect_current<serve::ServeOptions>("serve");
  expect_current<ReportOptions>("report");
  expect_current<fetch::DataGetOptions>("data get");
}

struct Odd {
  std::vector<std::string> files = {};
  std::size_t count = 3;
  double share = 0.25;
  std::optional<double> limit = {};
  Margins margin = Margins::bound;
  std::vector<std::string> names = {"a", "b"};
  bool flag = false;

  static void describe(auto& visit, auto& self) {
    visit.input("FILE", self.files, "What is read");
    visit("count", self.count, "How many", OptionFacts{.low = 1, .high = 10});
    visit("share", self.share, "Of a|b", OptionFacts{.type = "X", .low = 0});
    visit("limit", self.limit, "At most", OptionFacts{.type = "X", .otherwise = "none"});
    visit("margin", self.margin, "Which");
    visit("names", self.names, "Some");
    visit("flag", self.flag, "Whether");
  }
};

TEST(OptionTable, TellsWhatAnOptionTakesItsDefaultAndItsSentence) {
  EXPECT_EQ(option_table<Odd>(),
            "| option | takes | default | what it does |\n"
            "|---|---|---|---|\n"
            "| `FILE…` |  |  | What is read |\n"
            "| `--count N` | 1 to 10 | `3` | How many |\n"
            "| `--share X` | at least 0 | `0.25` | Of a\\|b |\n"
            "| `--limit X` |  | none | At most |\n"
            "| `--margin NAME` | `exact`, `bound` | `bound` | Which |\n"
            "| `--names NAME…` |  | `a b` | Some |\n"
            "| `--flag` |  |  | Whether |\n");
}

TEST(OptionCheck, NamesWhatIsOutOfRangeAsTheCommandLineDoes) {
  const auto refused = [](const Odd& options) {
    return message_of<InputError>([&] { check_options(options); });
  };
  EXPECT_EQ(refused({.count = 0}), "--count takes a whole number from 1 to 10, not '0'.");
  EXPECT_EQ(refused({.count = 11}), "--count takes a whole number from 1 to 10, not '11'.");
  EXPECT_EQ(refused({.share = -0.5}), "--share takes a finite number of at least 0, not '-0.5'.");
  EXPECT_NE(refused({.share = std::nan("")}), "");
  EXPECT_NO_THROW(check_options(Odd{.limit = 5}));
}

TEST(OptionCheck, IsHowEveryStudyBegins) {
  const Executor executor(1);
  const Context context{executor};
  const auto refused = [](const auto& call) { return message_of<InputError>(call); };
  EXPECT_EQ(refused([] { plan_heatmap({.draws = 0}); }),
            "--draws takes a whole number from 1 to 16777216, not '0'.");
  EXPECT_EQ(refused([] { plan_equilibria({.steps = 1}); }),
            "--steps takes a whole number from 2 to 16777216, not '1'.");
  EXPECT_EQ(refused([] { plan_masks({.masks = {"full"}, .n = 0}, 0); }),
            "--n takes a whole number from 1 to 16777216, not '0'.");
  EXPECT_EQ(refused([] { plan_collapse({.eps = -1}, std::nullopt, 0); }),
            "--eps takes a finite number of at least 0, not '-1'.");
  KeysOptions keys;
  keys.noise = -0.5;
  EXPECT_EQ(refused([&] { study_keys(keys, context); }),
            "--noise takes a finite number of at least 0, not '-0.5'.");
  VocabOptions vocab;
  vocab.limit = 10'000'000;
  EXPECT_EQ(refused([&] { study_vocab(vocab, context); }),
            "--limit takes a whole number from 0 to 1000000, not '10000000'.");
  ScanOptions scan;
  scan.text.samples = 0;
  EXPECT_EQ(refused([&] { plan_scan(scan); }), "--samples takes a whole number from 1 to 1000000, not '0'.");
  AblateOptions ablate;
  ablate.tolerated = 2;
  EXPECT_EQ(refused([&] { plan_ablate(ablate, context); }),
            "--tolerated takes a number from 1e-06 to 1, not '2'.");
  MajorityOptions majority;
  majority.feed_forward = 0;
  EXPECT_EQ(refused([&] { plan_majority(majority); }),
            "--feed-forward takes a whole number from 1 to 1000000000, not '0'.");
  LanguageOptions language;
  language.held_out = 1;
  EXPECT_EQ(refused([&] { plan_language(language, context); }),
            "--held-out takes a number from 0 to 0.99, not '1'.");
  SentimentOptions sentiment;
  sentiment.dropout = 1.5;
  EXPECT_EQ(refused([&] { plan_sentiment(sentiment, context); }),
            "--dropout takes a number from 0 to 1, not '1.5'.");
  PaperOptions paper;
  paper.seeds = 11;
  EXPECT_EQ(refused([&] { plan_paper(paper, 0, {}); }),
            "--seeds takes a whole number from 1 to 10, not '11'.");
}

TEST(OptionCheck, AcceptsTheDefaultsOfEveryCommand) {
  EXPECT_NO_THROW(check_options(cli::Common()));
  EXPECT_NO_THROW(check_options(KeysOptions()));
  EXPECT_NO_THROW(check_options(ScanOptions()));
  EXPECT_NO_THROW(check_options(VocabOptions()));
  EXPECT_NO_THROW(check_options(AblateOptions()));
  EXPECT_NO_THROW(check_options(cli::HeatmapCall()));
  EXPECT_NO_THROW(check_options(cli::MaskCall()));
  EXPECT_NO_THROW(check_options(cli::CollapseCall()));
  EXPECT_NO_THROW(check_options(EquilibriaOptions()));
  EXPECT_NO_THROW(check_options(cli::TrainingCall<MajorityOptions>()));
  EXPECT_NO_THROW(check_options(cli::TrainingCall<LanguageOptions>()));
  EXPECT_NO_THROW(check_options(cli::TrainingCall<SentimentOptions>()));
  EXPECT_NO_THROW(check_options(cli::PaperCall()));
  EXPECT_NO_THROW(check_options(serve::ServeOptions()));
  EXPECT_NO_THROW(check_options(ReportOptions()));
}

}  // namespace
}  // namespace normscope
