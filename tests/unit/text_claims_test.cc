#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "normscope/executor.h"
#include "paper/brody_tables.h"
#include "paper/published_sentences.h"

namespace normscope {
namespace {

Findings found_by(MakeExhibit* part, std::span<const TextEvidence> runs, const TextRecipe& recipe = {}) {
  const PaperPlan plan;
  const Executor executor(1);
  Evidence evidence{plan, executor};
  evidence.texts = runs;
  evidence.recipe = recipe;
  return judge(part(), evidence);
}
std::vector<Judgement> claims_of_figure4(std::span<const TextEvidence> runs, const TextRecipe& recipe) {
  return found_by(brody_fig4, runs, recipe).claims;
}
std::vector<Judgement> claims_of_table1(std::span<const TextEvidence> runs, const TextRecipe& recipe) {
  return found_by(brody_table1, runs, recipe).claims;
}
std::vector<Judgement> claims_of_table2(std::span<const TextEvidence> runs, const TextRecipe& recipe) {
  return found_by(brody_table2, runs, recipe).claims;
}
std::vector<Judgement> claims_of_table3(std::span<const TextEvidence> runs, const TextRecipe& recipe) {
  return found_by(brody_table3, runs, recipe).claims;
}
std::vector<Judgement> claims_of_table4(std::span<const TextEvidence> runs, const TextRecipe& recipe) {
  return found_by(brody_table4, runs, recipe).claims;
}

TextRecipe published_recipe() {
  TextRecipe recipe;
  recipe.corpus = "an encyclopedia";
  recipe.tokenizer = "GPT-2's BPE";
  recipe.steps = 50'000;
  recipe.batch = 16;
  recipe.context = 1024;
  recipe.windows = 8;
  recipe.eps = 1e-5;
  return recipe;
}

TextRecipe reduced_recipe() {
  TextRecipe recipe = published_recipe();
  recipe.steps = 600;
  recipe.batch = 2;
  return recipe;
}

// Four layers of 1000 keys, with so many unselectable; two heads with 900 and 1000 of 1000.
ModelTally tally_of(std::size_t before, std::size_t after) {
  ModelTally tally;
  tally.windows = 1;
  for (int l = 0; l < 4; ++l)
    tally.layers.push_back(
        {{1000, 0, before}, {1000, 0, after}, {{1000, 0, 900}, {1000, 0, 1000}}, {1000, 0, 0}, {1000, 0, 0}});
  return tally;
}

TextEvidence run_of(const char* norm, std::uint64_t seed, double loss, const ModelTally& tally) {
  TextEvidence run;
  run.id = {norm, seed};
  for (const std::uint64_t step : {0, 300, 600}) {
    TextRow row;
    row.step = step;
    row.train_loss = loss;
    row.held_out = TransformerLoss{loss + (step == 0 ? 3 : 0), 0.5, 10};
    run.rows.push_back(row);
  }
  run.snapshots = {{0, tally}, {600, tally}};
  return run;
}

// Losses with scaling, and what is added without it, per seed.
std::vector<TextEvidence> runs_with(const std::vector<double>& gains, std::size_t before = 400,
                                    std::size_t after_without = 500, std::size_t after_with = 0) {
  std::vector<TextEvidence> runs;
  const auto loss = [](std::size_t seed) { return 7.0 + static_cast<double>(seed); };  // seeds differ widely
  for (std::size_t s = 0; s < gains.size(); ++s)
    runs.push_back(run_of(kWithScaling, s, loss(s), tally_of(before, after_with)));
  for (std::size_t s = 0; s < gains.size(); ++s)
    runs.push_back(run_of(kWithoutScaling, s, loss(s) + gains[s], tally_of(before, after_without)));
  return runs;
}

std::string verdict(const std::vector<Judgement>& claims, std::size_t i) {
  return verdict_of(claims.at(i));
}

TEST(TextClaims, LossesAreComparedSeedBySeed) {
  // The seeds differ by whole nats, the norms by hundredths: only pairs can tell.
  const auto claims = claims_of_figure4(runs_with({0.05, 0.06, 0.04}), published_recipe());
  ASSERT_EQ(claims.size(), 2u);
  EXPECT_EQ(verdict(claims, 0), "holds");
  EXPECT_EQ(verdict(claims, 1), "holds");
  EXPECT_NE(claims[0].measured.find("0.0500 ± 0.0248"), std::string::npos) << claims[0].measured;
  EXPECT_EQ(verdict(claims_of_figure4(runs_with({-0.05, -0.06, -0.04}), published_recipe()), 1),
            "does not hold");
  EXPECT_EQ(verdict(claims_of_figure4(runs_with({0.05, -0.06, 0.04}), published_recipe()), 1), "open");
  const auto none = claims_of_figure4(runs_with({0.001, -0.001, 0.0}), published_recipe());
  EXPECT_EQ(verdict(none, 1), "open");
  EXPECT_NE(none[1].why.find("0.05, lies beyond it"), std::string::npos) << none[1].why;
}

TEST(TextClaims, TwoSeedsOrNoneAreNotEnough) {
  EXPECT_EQ(verdict(claims_of_figure4(runs_with({0.05, 0.05}), published_recipe()), 0), "open");
  for (const auto& claims :
       {claims_of_figure4({}, published_recipe()), claims_of_table1({}, published_recipe()),
        claims_of_table2({}, published_recipe()), claims_of_table3({}, published_recipe()),
        claims_of_table4({}, published_recipe())}) {
    for (const Judgement& claim : claims) {
      EXPECT_EQ(verdict_of(claim), "open") << claim.claim;
      EXPECT_NE(claim.measured, "") << claim.claim;
    }
  }
}

TEST(TextClaims, AReducedRecipeSettlesItsOwnSentence) {
  const auto yes = claims_of_figure4(runs_with({0.05, 0.06, 0.04}), reduced_recipe());
  EXPECT_EQ(verdict(yes, 0), "for 600 steps of 2 × 1024 tokens: holds");
  EXPECT_EQ(yes[0].not_at_hand, "50000 steps of 16 × 1024 tokens of Wikipedia");
  const auto no = claims_of_figure4(runs_with({-0.05, -0.06, -0.04}), reduced_recipe());
  EXPECT_EQ(verdict(no, 0), "for 600 steps of 2 × 1024 tokens: does not hold");
}

TEST(TextClaims, GeneratedTextIsSaidAloud) {
  TextRecipe recipe = published_recipe();
  recipe.generated = true;
  const auto runs = runs_with({0.05, 0.06, 0.04});
  const auto claims = claims_of_figure4(runs, recipe);
  EXPECT_EQ(verdict(claims, 0), "for text written by a grammar: holds");
  EXPECT_NE(claims[0].why.find("GENERATED TEXT"), std::string::npos);
  EXPECT_NE(found_by(brody_fig4, runs, recipe).figures.at(0).svg.find("GENERATED TEXT"), std::string::npos);
}

TEST(TextClaims, UnselectableKeysWithScalingAreLaidToEpsOrRounding) {
  const auto holds = claims_of_table1(runs_with({0, 0, 0}), reduced_recipe());
  ASSERT_EQ(holds.size(), 3u);
  EXPECT_EQ(verdict(holds, 1), "holds");
  EXPECT_EQ(holds[1].measured, "0 of 12000 keys of the trained models");

  auto runs = runs_with({0, 0, 0});
  const auto expect = [&](const std::string& words, const std::string& measured) {
    for (const auto& claims :
         {claims_of_table1(runs, reduced_recipe()), claims_of_table2(runs, reduced_recipe())}) {
      EXPECT_NE(verdict(claims, 1).find(words), std::string::npos) << verdict(claims, 1);
      EXPECT_NE(claims[1].measured.find(measured), std::string::npos) << claims[1].measured;
    }
  };
  // On the way only: the claim is about trained models, and what was seen before is told.
  runs[1].snapshots[0].tally.layers[2].after.unselectable = 7;
  expect("holds", "0 of 12000 keys of the trained models; at all stages of training 7 of 24000");
  EXPECT_EQ(verdict(claims_of_table1(runs, reduced_recipe()), 1), "holds");
  // In one trained model: no recipe excuses it. Which of eps and float32 did it is told apart.
  LayerTally& layer = runs[1].snapshots[1].tally.layers[2];
  layer.after.unselectable = 5;
  expect("holds only if keys are not rounded to float32",
         "5 of 12000 keys of the trained models; at all stages of training 12 of 24000 as the model computes "
         "them, in float32 (0 robust): 0 with its eps, 1e-05, in float64, 0 by projection and scaling alone");
  layer.unrounded.unselectable = 4;
  layer.after.robust = 3;
  expect("holds only if the norm has no eps", "(3 robust): 4 with its eps");
  EXPECT_NE(verdict(claims_of_table1(runs, reduced_recipe()), 2).find("; and the norm has no eps"),
            std::string::npos);
  layer.sphere.unselectable = 1;
  expect("does not hold", "1 by projection and scaling alone");
  EXPECT_EQ(verdict(claims_of_table1(runs, reduced_recipe()), 2), "does not hold");
}

TEST(TextClaims, ASubstantialShareIsAskedOfEveryLayer) {
  EXPECT_EQ(verdict(claims_of_table1(runs_with({0, 0, 0}), published_recipe()), 0), "holds");
  EXPECT_EQ(verdict(claims_of_table2(runs_with({0, 0, 0}), published_recipe()), 0), "holds");
  auto runs = runs_with({0, 0, 0});
  for (TextEvidence& run : runs) {
    run.snapshots.back().tally.layers[3].before.unselectable = 20;
    run.snapshots.back().tally.layers[3].after.unselectable = 20;
  }
  EXPECT_EQ(verdict(claims_of_table1(runs, published_recipe()), 0), "does not hold");
  EXPECT_EQ(verdict(claims_of_table2(runs, published_recipe()), 0), "does not hold");
  EXPECT_EQ(verdict(claims_of_table2(runs, reduced_recipe()), 0),
            "for 600 steps of 2 × 1024 tokens: does not hold");
}

TEST(TextClaims, ModelsThatHardlyLearnedLeaveSharesOpen) {
  auto runs = runs_with({0, 0, 0});
  for (TextEvidence& run : runs) run.rows.front().held_out->loss = run.rows.back().held_out->loss + 0.1;
  for (const auto& claims :
       {claims_of_table1(runs, published_recipe()), claims_of_table2(runs, published_recipe())}) {
    EXPECT_EQ(verdict(claims, 0), "open");
    EXPECT_NE(claims[0].why.find("fell by 0.10 nats"), std::string::npos) << claims[0].why;
    EXPECT_EQ(verdict(claims, 1), "holds");  // whatever the model has learned
  }
}

// Half a nat in the mean, but not beyond doubt.
TEST(TextClaims, WhetherModelsHaveLearnedIsToldByAnInterval) {
  auto runs = runs_with({0, 0, 0});
  const double gains[] = {0.2, 0.7, 0.9};
  for (TextEvidence& run : runs) {
    run.rows.front().held_out->loss = run.rows.back().held_out->loss + gains[run.id.seed];
    run.marked.sentences.resize(1);
    run.marked.sentences[0].tokens = {"a"};
    run.marked.sentences[0].layers = {{0}};
  }
  for (const auto& claims :
       {claims_of_table1(runs, published_recipe()), claims_of_table2(runs, published_recipe()),
        claims_of_table3(runs, published_recipe())}) {
    EXPECT_EQ(verdict(claims, 0), "open");
    EXPECT_NE(claims[0].why.find("cannot be told from these seeds: their held-out loss fell by 0.60 ± "),
              std::string::npos)
        << claims[0].why;
    EXPECT_EQ(claims[0].why.find("hardly"), std::string::npos) << claims[0].why;
  }
  // The same mean below what is asked for, and one that is hardly learned beyond doubt.
  for (TextEvidence& run : runs)
    run.rows.front().held_out->loss = run.rows.back().held_out->loss + gains[run.id.seed] - 0.2;
  EXPECT_NE(claims_of_table1(runs, published_recipe())[0].why.find("cannot be told"), std::string::npos);
  for (TextEvidence& run : runs)
    run.rows.front().held_out->loss = run.rows.back().held_out->loss + gains[run.id.seed] / 10;
  EXPECT_NE(claims_of_table1(runs, published_recipe())[0].why.find("hardly learned"), std::string::npos);
  // One seed has no interval.
  EXPECT_EQ(verdict(claims_of_table3(std::span(runs).last(1), published_recipe()), 0), "open");
}

TEST(TextClaims, WhetherTheTaskWasLearnedIsToldByAnInterval) {
  TextRecipe recipe = published_recipe();
  recipe.training_texts = 100;
  recipe.batch = 32;
  recipe.context = 128;
  recipe.classes = 2;
  const auto claim_of_accuracies = [&](const std::vector<double>& accuracies) {
    std::vector<TextEvidence> runs;
    for (std::size_t seed = 0; seed < accuracies.size(); ++seed) {
      runs.push_back(run_of("none", seed, 0.5, tally_of(0, 0)));
      runs.back().rows.back().held_out->accuracy = accuracies[seed];
      runs.back().marked.sentences.resize(1);
      runs.back().marked.sentences[0].tokens = {"a"};
      runs.back().marked.sentences[0].layers = {{0}};
    }
    return claims_of_table4(runs, recipe).at(0);
  };
  EXPECT_EQ(verdict_of(claim_of_accuracies({0.80, 0.81, 0.82})), "holds");
  const Judgement wide = claim_of_accuracies({0.5, 0.6, 0.7});
  EXPECT_EQ(verdict_of(wide), "open");
  EXPECT_NE(wide.why.find("cannot be told from these seeds: 60.0 ± 24.8 % of the test texts are right, and "
                          "55 % are asked for (chance is 50 %)"),
            std::string::npos)
      << wide.why;
  EXPECT_EQ(verdict_of(claim_of_accuracies({0.9})), "open");  // one seed has no interval
  EXPECT_NE(claim_of_accuracies({0.50, 0.51, 0.50}).why.find("hardly learned"), std::string::npos);
}

TEST(TextClaims, EveryKeySelectableHoldsInModelSpaceOnly) {
  const auto claims = claims_of_table1(runs_with({0, 0, 0}), reduced_recipe());
  EXPECT_NE(verdict(claims, 2).find("holds only if keys are what leaves the norm"), std::string::npos);
  EXPECT_NE(claims[2].measured.find("95.0 ± 0.0 / 95.0"), std::string::npos) << claims[2].measured;
  auto runs = runs_with({0, 0, 0});
  for (TextEvidence& run : runs) {
    for (LayerTally& layer : run.snapshots.back().tally.layers) layer.heads = {{1000, 0, 0}};
  }
  EXPECT_EQ(verdict(claims_of_table1(runs, reduced_recipe()), 2), "holds");
}

TEST(TextClaims, RunsThatBrokeAreLeftOut) {
  auto runs = runs_with({0.05, 0.06, 0.04, -50});
  runs.back().broken = true;
  EXPECT_EQ(verdict(claims_of_figure4(runs, published_recipe()), 0), "holds");
  EXPECT_NE(found_by(brody_fig4, runs, published_recipe()).figures.at(0).svg.find("Left out: 1"),
            std::string::npos);
}

TEST(TextClaims, TablesHaveTheHeadsBesideWhatWasPublished) {
  const ReportTable table = found_by(brody_table1, runs_with({0, 0, 0})).tables.at(0);
  ASSERT_EQ(table.rows.size(), 10u);
  for (const auto& row : table.rows) EXPECT_EQ(row.size(), 5u) << row.front();
  EXPECT_EQ(table.rows[1][1], "51.0");
  EXPECT_EQ(table.rows[2][1], "50.0 ± 0.0");
  for (std::size_t row = 4; row < 8; ++row) EXPECT_EQ(table.rows[row][4], "0.0 ± 0.0");
  EXPECT_EQ(table.rows[8][2], "95.0 ± 0.0 (90.0 to 100.0)");
  EXPECT_EQ(found_by(brody_table2, runs_with({0, 0, 0})).tables.at(0).rows[2][3], "40.0 ± 0.0");
}

// Of a picture: what is between its tags, with one space where there were any.
std::string words_of(const std::string& svg) {
  std::string words;
  bool inside = false;
  for (const char c : svg) {
    inside = c == '<' || (inside && c != '>');
    const bool apart = inside || c == '>' || c == '\n' || c == ' ';
    if (!apart)
      words += c;
    else if (!words.empty() && words.back() != ' ')
      words += ' ';
  }
  return words;
}

// The caption names no cause: what eps has done is what the panel without it lacks.
TEST(TextClaims, TheTrendShowsKeysWithoutEpsBesideThoseWithIt) {
  const std::vector<Figure> figures = found_by(brody_table1, runs_with({0, 0, 0}, 400, 500, 100)).figures;
  const auto trend = std::find_if(figures.begin(), figures.end(),
                                  [](const Figure& figure) { return figure.name == "selectability"; });
  ASSERT_NE(trend, figures.end());
  const std::string words = words_of(trend->svg);
  EXPECT_NE(words.find("decided again without eps, in the panel beside it"), std::string::npos) << words;
  const auto with_eps = trend->svg.find("With LayerNorm: after the norm"),
             without_eps = trend->svg.find("With LayerNorm: by projection and scaling alone"),
             heads = trend->svg.find("With LayerNorm: in the heads");
  EXPECT_LT(with_eps, without_eps);
  EXPECT_LT(without_eps, heads);
  EXPECT_NE(heads, std::string::npos);
}

MarkedSentence sentence(const std::vector<std::string>& tokens, std::size_t marked) {
  MarkedSentence result;
  result.tokens = tokens;
  result.of_layers = 4;
  result.layers.resize(tokens.size());
  for (std::size_t i = 0; i < marked; ++i) result.layers[i] = {1, 3};
  return result;
}

TEST(TextClaims, ImportantWordsAreWeighedSentenceBySentence) {
  TextRecipe recipe = published_recipe();
  recipe.training_texts = 100;
  recipe.batch = 32;
  recipe.context = 128;
  // Of two sentences of three tokens, the first of which is unselectable: how much each token matters.
  const auto claim_of = [&](const std::vector<double>& one, const std::vector<double>& other) {
    std::vector<TextEvidence> runs;
    for (std::uint64_t seed = 0; seed < 3; ++seed) {
      runs.push_back(run_of("none", seed, 0.5, tally_of(0, 0)));
      runs.back().marked.sentences = {sentence({"a", "b", "c"}, 1), sentence({"d", "e", "f"}, 1),
                                      sentence({"g"}, 0)};
      runs.back().marked.sentences[0].importance = one;
      runs.back().marked.sentences[1].importance = other;
    }
    const auto claims = claims_of_table4(runs, recipe);
    return claims.size() > 1 ? std::optional(claims[1]) : std::nullopt;
  };
  const auto some = claim_of({0.3, 0.1, -0.2}, {0.1, 0.2, 0});
  ASSERT_TRUE(some);
  EXPECT_EQ(verdict_of(*some), "holds");
  EXPECT_NE(
      some->measured.find(
          "of 2 sentences the most important token is unselectable in 50.0 ± 0.0 %; of all their tokens 33.3"),
      std::string::npos)
      << some->measured;
  EXPECT_EQ(verdict_of(*claim_of({0, 0.1, 0.2}, {0.1, 0.2, 0})), "does not hold");
  EXPECT_FALSE(claim_of({}, {}));  // nothing was weighed
}

TEST(TextClaims, WordsAreCountedInEveryRun) {
  std::vector<TextEvidence> runs;
  for (std::uint64_t seed = 0; seed < 3; ++seed) {
    runs.push_back(run_of("none", seed, 0.5, tally_of(0, 0)));
    runs.back().marked.sentences = {sentence({"a", "b"}, 1), sentence({"c", "d"}, 0)};
  }
  TextRecipe recipe = published_recipe();
  recipe.training_texts = 100;
  recipe.batch = 32;
  recipe.context = 128;
  auto claims = claims_of_table4(runs, recipe);
  EXPECT_EQ(verdict(claims, 0), "holds");
  EXPECT_NE(claims[0].measured.find("25.0 ± 0.0 % of the tokens, in 50.0"), std::string::npos)
      << claims[0].measured;
  recipe.classes = 2;  // all is guessed
  claims = claims_of_table4(runs, recipe);
  EXPECT_EQ(verdict(claims, 0), "open");
  EXPECT_NE(claims[0].why.find("chance is 50 %"), std::string::npos) << claims[0].why;
  recipe.classes = 0;
  for (TextEvidence& run : runs) run.marked.sentences = {sentence({"a", "b"}, 0)};
  EXPECT_EQ(verdict(claims_of_table4(runs, recipe), 0), "does not hold");
  runs[0].marked.sentences = {sentence({"a", "b"}, 1)};
  EXPECT_EQ(verdict(claims_of_table4(runs, recipe), 0), "open");
}

// d + 1 keys in general position are all selectable: that none is found among so few says nothing.
TEST(TextClaims, SentencesOfFewTokensHaveNoPower) {
  std::vector<TextEvidence> runs;
  for (std::uint64_t seed = 0; seed < 3; ++seed) {
    runs.push_back(run_of("none", seed, 0.5, tally_of(0, 0)));
    runs.back().marked.sentences = {sentence(std::vector<std::string>(7, "a"), 0),
                                    sentence(std::vector<std::string>(7, "b"), 0),
                                    sentence(std::vector<std::string>(30, "c"), 0)};
    runs.back().marked.tally = tally_of(0, 0);
    runs.back().marked.tally.layers[0].after.keys = 7 + 7 + 30 + 3 * 2;  // [CLS] and [SEP] of each
  }
  TextRecipe recipe = published_recipe();
  recipe.width = 8;
  auto claims = claims_of_table4(runs, recipe);
  EXPECT_EQ(verdict(claims, 0), "open");
  EXPECT_NE(claims[0].why.find("No power: 6 of 9 sentences have at most 9 tokens"), std::string::npos)
      << claims[0].why;
  for (TextEvidence& run : runs) run.marked.tally.layers[0].after.keys = 7 + 7 + 30 + 3 * 3;
  EXPECT_EQ(verdict(claims_of_table4(runs, recipe), 0), "does not hold");
  for (TextEvidence& run : runs) {
    run.marked.tally.layers[0].after.keys = 7 + 7 + 30 + 3 * 2;
    run.marked.sentences[0].layers[2] = {1};
  }
  EXPECT_EQ(verdict(claims_of_table4(runs, recipe), 0), "holds");  // what is there was seen
}

TEST(TextClaims, WordsThatThePaperMarksStandBesideWhatIsMarkedHere) {
  std::size_t words = 0;
  for (const int table : {3, 4}) {
    const auto sentences = published_sentences(table);
    ASSERT_EQ(sentences.size(), 5u);
    for (const PublishedSentence& each : sentences) {
      words += each.marked.size();
      EXPECT_EQ(each.text.find('*'), std::string::npos);
      EXPECT_EQ(short_sentences(each.text, 2),
                std::vector{each.text});  // long as they are, --text takes them
    }
  }
  EXPECT_EQ(words, 14u);
  const PublishedSentence first = published_sentences(3).front();
  EXPECT_EQ(first.text.substr(first.marked[0].first, first.marked[0].second - first.marked[0].first),
            "talent");
  // The text in three tokens, of which the second holds the first marked word and no other.
  const auto [begin, end] = first.marked[0];
  TextEvidence run = run_of("center", 1, 0.5, tally_of(0, 0));
  run.marked.sentences = {sentence(
      {first.text.substr(0, begin), first.text.substr(begin, end - begin), first.text.substr(end)}, 0)};
  run.marked.sentences[0].layers[1] = {2};
  const auto tables = with_published_marks(3, {&run});
  ASSERT_EQ(tables.size(), 1u);
  ASSERT_EQ(tables[0].rows.size(), 3u);
  EXPECT_EQ(tables[0].rows[1][1], "talent");
  EXPECT_EQ(tables[0].rows[1][2], "in 1 of 1 seed");
  EXPECT_EQ(tables[0].rows[2][1], "power");
  EXPECT_EQ(tables[0].rows[2][2], "in 0 of 1 seed");
  EXPECT_TRUE(with_published_marks(4, {&run}).empty());
}

TEST(TextClaims, MarkedSentencesComeWithTheMostFirst) {
  const MarkedSentence all[] = {sentence({"x", "y"}, 0), sentence({"p", "q", "r"}, 2), sentence({"s"}, 1)};
  const TextFigure figure = marked_figure(all, 2);
  ASSERT_EQ(figure.tokens.size(), 6u);
  EXPECT_EQ(figure.tokens[0].text, "p");
  EXPECT_EQ(figure.tokens[0].value, 0.5);
  EXPECT_EQ(figure.tokens[0].hint, "layer 2, layer 4");
  EXPECT_EQ(figure.tokens[2].kind, "");
  EXPECT_EQ(figure.tokens[4].text, "s");
}

TEST(TextSelectability, SentencesAreThoseThatCanBeShown) {
  const auto found = short_sentences(
      "Short. This is the first one that is long enough!  And 3.5 stars are given for the second?\n\nA title "
      "in two\nlines is none of them, I fear. The last one has no end to it at all",
      10);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0], "This is the first one that is long enough!");
  EXPECT_EQ(found[1], "And 3.5 stars are given for the second?");
  EXPECT_EQ(
      short_sentences("One two three four five six seven. One two three four five six seven.", 1).size(), 1u);
}

TEST(TextSelectability, TalliesAreThoseOfTheScan) {
  TransformerSpec spec = published_language_model();
  spec.model.vocabulary = 50;
  spec.model.block.dropout = 0;
  const Executor executor(2);
  std::vector<std::vector<std::uint32_t>> windows(2);
  for (std::uint32_t i = 0; i < 120; ++i) windows[i % 2].push_back(i * i % 50);
  for (const char* norm : {kWithScaling, kWithoutScaling}) {
    const TransformerSpec with = with_norm(spec, norm);
    const auto model = trained_model(with, initial_parameters(with, 3));
    const ModelTally tally = tally_keys(*model, windows, executor);
    const auto scanned = scan(*model, windows, {}, executor);
    ASSERT_EQ(tally.layers.size(), 4u);
    EXPECT_EQ(tally.windows, 2u);
    for (std::size_t l = 0; l < 4; ++l) {
      const LayerTally& layer = tally.layers[l];
      EXPECT_EQ(layer.before.keys, 120u);
      EXPECT_EQ(layer.before.unselectable, scanned[0].layers[l].before.count(Verdict::unselectable) +
                                               scanned[1].layers[l].before.count(Verdict::unselectable));
      const bool scales = norm == std::string(kWithScaling);
      EXPECT_EQ(layer.after.unselectable == 0, scales) << norm << l;
      EXPECT_EQ(layer.after.robust, *scanned[0].layers[l].model.robust_unselectable +
                                        *scanned[1].layers[l].model.robust_unselectable);
      EXPECT_EQ(layer.unrounded.keys, scales ? 120u : 0u);
      EXPECT_EQ(layer.sphere, (KeyTally{scales ? 120u : 0u, 0, 0, 0}));
      ASSERT_EQ(layer.heads.size(), 4u);
      EXPECT_LE(layer.head_least(), layer.head_mean());
      EXPECT_GT(layer.head_most(), 0.5);
    }
    // A token is marked where the scan says so, and what is not of the text is not told.
    Sentence sentence{windows[0], std::vector<std::string>(windows[0].size(), "w")};
    sentence.spelled[0] = "";
    const MarkedText marked = mark_sentences(*model, std::span(&sentence, 1), executor);
    ASSERT_EQ(marked.sentences.size(), 1u);
    ASSERT_EQ(marked.sentences[0].tokens.size(), windows[0].size() - 1);
    for (std::size_t i = 1; i < windows[0].size(); ++i)
      EXPECT_EQ(marked.sentences[0].layers[i - 1].size(), scanned[0].unselectable(KeySpace::model, i));
  }
}

}  // namespace
}  // namespace normscope
