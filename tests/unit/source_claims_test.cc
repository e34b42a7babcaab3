// Parts of the audit that run only if they are named: what is proved, what a page claims, what a paper leaves open.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "normscope/error.h"
#include "normscope/executor.h"
#include "normscope/norm_identities.h"
#include "paper/part.h"
#include "study/paper.h"

namespace normscope {
namespace {

// A part with everything it needs made in this process.
struct Bench {
  PaperPlan plan;
  Executor executor{2};
  TrainMajority train = {};
  RunCollapse collapsing = {};  // in the place of the real one
  std::vector<PretrainedModel> models = {};

  Bench() {
    plan.draws = 4;
    plan.samples = 3;
    plan.steps = 100;
    plan.steps_3d = 100;
    plan.seeds = {1, 2, 3};
  }
  Findings find(MakeExhibit* part) const {
    Evidence evidence{plan, executor};
    evidence.collapse = [&](const std::string&, const std::vector<CollapseCase>& cases,
                            const CollapseSettings& settings) { return collapse(cases, settings, executor); };
    if (collapsing) evidence.collapse = collapsing;
    evidence.models = models;
    evidence.progress = [](const std::string&, const char*) { return [](std::size_t, std::size_t) {}; };
    evidence.train_majority = train;
    return judge(part(), evidence);
  }
};

const Judgement& claim_with(const Findings& found, const std::string& words) {
  const auto claim = std::find_if(found.claims.begin(), found.claims.end(), [&](const Judgement& each) {
    return each.claim.find(words) != std::string::npos;
  });
  if (claim == found.claims.end()) throw std::runtime_error("no claim says " + words);
  return *claim;
}

TEST(PaperPlan, HasPartsThatRunOnlyIfNamed) {
  const auto parts_of = [](const std::string& only) {
    PaperOptions options;
    options.only = only;
    if (only.empty()) options.models = "none";
    return plan_paper(options, 0, [](std::string_view) {}).parts;
  };
  const std::vector<std::string> usual = parts_of("");
  std::size_t named = 0;
  for (const PaperPart& part : paper_parts()) {
    EXPECT_EQ(std::find(usual.begin(), usual.end(), part.name) == usual.end(), part.if_named) << part.name;
    named += part.if_named;
  }
  EXPECT_EQ(named, 9u);
  EXPECT_EQ(parts_of("page,wu1"), (std::vector<std::string>{"wu1", "page"}));
}

TEST(NormIdentities, HoldToRoundingInAnyDimension) {
  for (const std::size_t d : {2, 3, 7, 100}) {
    const NormIdentities found = norm_identities(d, 50, d);
    EXPECT_EQ(found.dimension, d);
    EXPECT_EQ(found.samples, 50u);
    EXPECT_EQ(found.undefined, 0) << d;
    EXPECT_LT(found.largest(), 1e-13) << d;
    EXPECT_GT(found.largest(), 0) << d;  // or nothing was compared
  }
  EXPECT_THROW(norm_identities(1), InputError);
  EXPECT_THROW(norm_identities(1 << 20), InputError);
  EXPECT_THROW(norm_identities(3, 0), InputError);
}

TEST(IdentityClaims, HoldAndDrawTheTwoPointsOfThePlane) {
  const Findings found = Bench().find(brody_identities);
  ASSERT_EQ(found.claims.size(), 4u);
  for (const Judgement& claim : found.claims)
    EXPECT_EQ(claim.holds, claim.claim.ends_with('?') ? Holds::answered : Holds::yes) << claim.measured;
  EXPECT_EQ(claim_with(found, "α = 0").verdict, "0, and the row is counted");
  ASSERT_EQ(found.figures.size(), 1u);
  EXPECT_EQ(found.figures[0].name, "fig5");
  EXPECT_NE(found.figures[0].caption.find("to 2 points of H"), std::string::npos) << found.figures[0].caption;
  ASSERT_EQ(found.tables.size(), 1u);
  for (const auto& row : found.tables[0].rows)
    EXPECT_EQ(row.size(), 12u);  // the dimension and eleven equations
}

TEST(PageClaims, AreAnsweredByExactVerdicts) {
  const Findings found = Bench().find(demo_page);
  ASSERT_EQ(found.claims.size(), 6u);
  const Judgement& large = claim_with(found, "large norm");
  EXPECT_EQ(large.holds, Holds::conditionally);
  EXPECT_NE(large.measured.find("e₄ 4 are"), std::string::npos) << large.measured;
  EXPECT_NE(large.why.find("all but 0 of"), std::string::npos) << large.why;
  EXPECT_EQ(claim_with(found, "most of the weight").holds, Holds::conditionally);
  const Judgement& projection = claim_with(found, "Projection alone");
  EXPECT_EQ(projection.holds, Holds::yes);
  EXPECT_NE(projection.why.find("it freed 0"), std::string::npos) << projection.why;
  const Judgement& both = claim_with(found, "projection and scaling");
  EXPECT_EQ(both.holds, Holds::conditionally) << both.measured;
  EXPECT_NE(both.condition.find("at least 3"), std::string::npos);
  EXPECT_NE(both.why.find("become equal (2 tied"), std::string::npos) << both.why;
  EXPECT_NE(both.why.find("the others cover (1 unselectable)"), std::string::npos) << both.why;
  const Judgement& without = claim_with(found, "impossible");
  EXPECT_EQ(without.holds, Holds::conditionally);
  EXPECT_NE(without.condition.find("scaling"), std::string::npos);
}

TEST(TheoremClaims, OnlyTheFactorNWithTheRadiusFails) {
  const Findings found = Bench().find(wu_theorems);
  ASSERT_EQ(found.claims.size(), 5u);
  const Judgement& weights = claim_with(found, "weight normalization");
  EXPECT_EQ(weights.holds, Holds::answered);
  EXPECT_NE(weights.verdict.find("without a norm it "), std::string::npos) << weights.verdict;
  EXPECT_NE(weights.verdict.find("; with one it "), std::string::npos) << weights.verdict;
  EXPECT_EQ(claim_with(found, "Without LayerNorm").holds, Holds::yes);
  EXPECT_EQ(claim_with(found, "no obtuse angle").holds, Holds::yes);
  const Judgement& second = claim_with(found, "Nε^{2r}");
  EXPECT_EQ(second.holds, Holds::conditionally);
  EXPECT_NE(second.measured.find("φ rises from 0 to 0.00276, claimed 0.015"), std::string::npos)
      << second.measured;
  EXPECT_NE(second.condition.find("diameter"), std::string::npos);
  const Judgement& values = claim_with(found, "which value matrices");
  EXPECT_EQ(values.holds, Holds::answered);
  // Theorem 2 and Corollary 1 speak of orthogonal matrices, and of no others.
  const ReportTable& bounds = found.tables.at(0);
  std::size_t orthogonal = 0;
  for (std::size_t r = 1; r < bounds.rows.size(); ++r) {
    const auto& row = bounds.rows[r];
    const bool rotation = row[0] == "orthogonal" || row[0] == "identity";
    const bool no_centre = row[1] == "block:4" || row[1] == "self";
    EXPECT_TRUE(rotation || row[6] == "–") << row[0] << row[1];
    EXPECT_TRUE(!no_centre || row[3] == "–") << row[0] << row[1];
    orthogonal += row[6] != "–";
  }
  EXPECT_GT(orthogonal, 10u);
}

TEST(StepClaims, AreToldByTheRun) {
  const Findings found = Bench().find(wu_steps);
  ASSERT_EQ(found.claims.size(), 4u);
  EXPECT_EQ(claim_with(found, "has a limit").holds, Holds::yes) << claim_with(found, "has a limit").measured;
  // Whole layers mix faster than a unit of continuous time does.
  EXPECT_NE(claim_with(found, "Whole layers").holds, Holds::yes)
      << claim_with(found, "Whole layers").measured;
  const Judgement& orthogonal = claim_with(found, "orthogonal value matrices");
  EXPECT_EQ(orthogonal.holds, Holds::conditionally) << orthogonal.measured;
  EXPECT_EQ(orthogonal.condition.find("−I"), std::string::npos) << orthogonal.condition;
  EXPECT_NE(orthogonal.why.find("Whole layers under −I collapse"), std::string::npos) << orthogonal.why;
  const Judgement& third = claim_with(found, "suitable value matrix");
  EXPECT_EQ(third.holds, Holds::yes) << third.measured;
  EXPECT_NE(third.measured.find("h = 0.02"), std::string::npos);
  ASSERT_EQ(found.figures.size(), 1u);
  EXPECT_EQ(found.tables.at(0).rows.size(), 17u);  // four values, two masks, with and without a norm
}

// Curves that keep so much per unit of time at a step size, and end where `left` says.
RunCollapse kept_per_time(std::function<double(double h)> kept, double left) {
  return [=](const std::string&, const std::vector<CollapseCase>& cases, const CollapseSettings& settings) {
    std::vector<CollapseCurve> curves;
    for (const CollapseCase& each : cases) {
      CollapseCurve& curve = curves.emplace_back();
      curve.group = each.group;
      curve.name = each.name;
      const double h = each.block.step;
      for (std::size_t s = 0; s < settings.samples; ++s)
        curve.rate.samples.push_back(std::pow(kept(h) * (1 + 1e-4 * static_cast<double>(s)), h));
      TokenMeasures measures;
      measures.norm = 1;
      measures.relative = 0.5;
      curve.layers.assign(settings.layers + 1, std::vector<TokenMeasures>(settings.samples, measures));
      for (std::size_t s = 0; s < settings.samples; ++s)
        curve.layers.back()[s].relative = 0.5 * left * (1 + 1e-4 * static_cast<double>(s));
    }
    return curves;
  };
}

TEST(StepClaims, ChangeWithWhatIsMeasured) {
  Bench bench;
  bench.collapsing = kept_per_time([](double) { return 0.5; }, 1e-6);
  const Findings same = bench.find(wu_steps);
  EXPECT_EQ(claim_with(same, "has a limit").holds, Holds::yes);
  EXPECT_EQ(claim_with(same, "Whole layers").holds, Holds::yes);
  EXPECT_EQ(claim_with(same, "orthogonal value matrices").holds, Holds::yes);
  // The text on −I is said only of a run in which it is so.
  EXPECT_EQ(claim_with(same, "orthogonal value matrices").why.find("Whole layers under −I"),
            std::string::npos);
  bench.collapsing = kept_per_time([](double h) { return h < 0.015 ? 0.3 : 0.5; }, 0.9);
  const Findings other = bench.find(wu_steps);
  EXPECT_EQ(claim_with(other, "has a limit").holds, Holds::no);
  EXPECT_EQ(claim_with(other, "Whole layers").holds, Holds::no);
  EXPECT_EQ(claim_with(other, "orthogonal value matrices").holds, Holds::no);
}

// A shape before training stands for a trained model.
TEST(AnisotropyClaims, SetCosinesBesideWhatHeadsCanSelect) {
  Bench bench;
  bench.plan.samples = 2;
  const Findings without = bench.find(wu_anisotropy);
  ASSERT_EQ(without.claims.size(), 4u);
  EXPECT_EQ(without.claims[2].holds, Holds::open);
  EXPECT_NE(without.claims[2].measured.find("no pretrained model"), std::string::npos);
  ASSERT_EQ(without.figures.size(), 1u);
  EXPECT_EQ(without.figures[0].name, "anisotropy");
  EXPECT_EQ(without.tables.at(0).rows.size(), 5u);

  ModelSpec spec;
  spec.family = "gpt2";
  spec.vocabulary = 50;
  spec.layers = 3;
  spec.positions = 20;
  spec.causal = true;
  spec.initializer_range = 0.3;
  spec.block.width = 6;
  spec.block.heads = 2;
  spec.block.norm = parse_norm("layernorm");
  spec.block.placement = Placement::pre;
  PretrainedModel model{"tiny", random_model(spec, 3), {}};
  for (std::uint32_t w = 0; w < 3; ++w) {
    std::vector<std::uint32_t>& ids = model.texts.emplace_back();
    for (std::uint32_t i = 0; i < 20; ++i) ids.push_back((7 * i + 11 * w) % 50);
  }
  bench.models = {model};
  const Findings found = bench.find(wu_anisotropy);
  EXPECT_NE(found.claims[2].measured.find("tiny: mean cosine"), std::string::npos)
      << found.claims[2].measured;
  EXPECT_EQ(found.claims[2].stand_in, "tiny");
  EXPECT_EQ(found.tables.at(0).rows.back().front(), "tiny");
  EXPECT_EQ(found.claims[0].measured, without.claims[0].measured);
}

// Runs that reach the loss after so many steps, by norm and width, seed by seed alike but for a little.
TrainMajority reached_after(std::function<double(const std::string& norm, std::size_t width)> steps) {
  return
      [steps](const std::string&, const MajoritySettings& settings, const std::vector<std::string>& norms) {
        std::vector<MajorityRun> runs;
        for (const std::string& norm : norms) {
          for (const std::uint64_t seed : {1, 2, 3}) {
            MajorityRun& run = runs.emplace_back();
            run.id = {norm, seed};
            run.spec = majority_encoder(settings, norm);
            run.parameters = initial_parameters(run.spec, seed);
            const auto at = static_cast<std::uint64_t>(steps(norm, settings.dimension)) + seed;
            for (const auto& [step, loss] :
                 {std::pair{std::uint64_t{0}, NAN}, {at, 0.4F}, {std::uint64_t{2000}, 0.1F}}) {
              MajorityRow& row = run.rows.emplace_back();
              row.step = step;
              row.train_loss = loss;
              row.angle_mean = step == 0 ? 80 : 20 + static_cast<double>(settings.dimension + seed % 2) / 4;
            }
            run.step = 2000;
          }
        }
        return runs;
      };
}

TEST(LimitsClaims, FadingIsToldSeedBySeed) {
  Bench bench;
  bench.plan.draws = 1;
  bench.train = reached_after([](const std::string& norm, std::size_t width) {
    return norm == "layernorm" ? 400.0 : 400 + 3200.0 / static_cast<double>(width);
  });
  const Findings found = bench.find(brody_limits);
  ASSERT_EQ(found.claims.size(), 6u);
  EXPECT_EQ(claim_with(found, "majority fades").holds, Holds::yes) << claim_with(found, "majority fades").why;
  EXPECT_EQ(claim_with(found, "turn less to 1").holds, Holds::yes);
  EXPECT_EQ(claim_with(found, "linear layer").holds, Holds::yes);
  EXPECT_EQ(claim_with(found, "In more dimensions").holds, Holds::yes);
}

TEST(LimitsClaims, WhatGrowsDoesNotFade) {
  Bench bench;
  bench.plan.draws = 1;
  bench.train = reached_after([](const std::string& norm, std::size_t width) {
    return norm == "rmsnorm" ? 400 + 10.0 * static_cast<double>(width) : 400.0;
  });
  const Findings found = bench.find(brody_limits);
  EXPECT_NE(claim_with(found, "majority fades").holds, Holds::yes);
}

// Of runs behind a matrix that ends as this, in 8 dimensions, and with this loss.
Findings behind_a_matrix(const std::function<double(std::size_t i, std::size_t j)>& entry, float loss) {
  Bench bench;
  bench.plan.draws = 1;
  const TrainMajority usual = reached_after([](const std::string&, std::size_t) { return 400.0; });
  bench.train = [=](const std::string& name, const MajoritySettings& settings,
                    const std::vector<std::string>& norms) {
    std::vector<MajorityRun> runs = usual(name, settings, norms);
    for (MajorityRun& run : runs) {
      if (!run.spec.matrix) continue;
      run.rows.back().train_loss = loss * (1 + 0.01F * static_cast<float>(run.id.seed));
      for (const ParameterSlot& slot : parameter_slots(run.spec)) {
        if (slot.name != "layers.0.matrix") continue;
        for (std::size_t i = 0; i < 64; ++i)
          run.parameters[slot.offset + i] =
              static_cast<float>(entry(i / 8, i % 8) * (1 + 0.1 * static_cast<double>(run.id.seed)));
      }
    }
    return runs;
  };
  return bench.find(brody_limits);
}
double projection(std::size_t i, std::size_t j) {
  return (i == j ? 1 : 0) - 1.0 / 8;
}

TEST(LimitsClaims, AMatrixIsToldByWhatItTakesAway) {
  const auto claim = [](const std::function<double(std::size_t, std::size_t)>& entry) {
    return claim_with(behind_a_matrix(entry, 0.1F), "becomes the projection");
  };
  EXPECT_EQ(claim(projection).holds, Holds::yes) << claim(projection).measured;
  EXPECT_EQ(claim([](std::size_t i, std::size_t j) { return i == j ? 1.0 : 0.0; }).holds, Holds::no);
  // Turned afterwards: coordinates in another order.
  const Judgement turned = claim([](std::size_t i, std::size_t j) { return projection((i + 3) % 8, j); });
  EXPECT_EQ(turned.holds, Holds::conditionally) << turned.measured;
  EXPECT_NE(turned.condition.find("mapped onto itself"), std::string::npos) << turned.condition;
  const Judgement other = claim([](std::size_t i, std::size_t j) { return i == j && i > 0 ? 1.0 : 0.0; });
  EXPECT_EQ(other.holds, Holds::conditionally) << other.measured;
  EXPECT_NE(other.condition.find("another direction"), std::string::npos) << other.condition;
}

TEST(LimitsClaims, TheLossBehindAMatrixIsComparedSeedBySeed) {
  const auto claim = [](float loss) {
    return claim_with(behind_a_matrix(projection, loss), "gets to LayerNorm's loss");
  };
  EXPECT_EQ(claim(0.1F).holds, Holds::yes) << claim(0.1F).measured;
  EXPECT_EQ(claim(0.2F).holds, Holds::no);
  EXPECT_EQ(claim(0.05F).holds, Holds::conditionally);
}

// A model whose retrieval without the norm, alone and rescaled, differs by so much from that as trained.
Judgement removed(double alone, double rescaled, double trained = 0.8) {
  Bench bench;
  const PretrainedModel models[] = {{"tiny", nullptr, {}}};
  Evidence evidence{bench.plan, bench.executor};
  evidence.models = models;
  evidence.ablate = [&](const PretrainedModel&) {
    Ablation ablation;
    for (const auto& [name, change] :
         {std::pair{"as trained", 0.0}, {"none", alone}, {"none, rescaled", rescaled}}) {
      AblateRow& row = ablation.rows.emplace_back();
      row.name = name;
      row.finds.chance = 0.02;
      for (std::size_t prompt = 0; prompt < 8; ++prompt)
        row.finds.share.push_back(trained + 0.01 * static_cast<double>(prompt % 3) + change);
    }
    return ablation;
  };
  for (const Claim& claim : demo_page().claims)
    if (claim.sentence.find("hurts sharp") != std::string::npos) return *judge(claim, evidence);
  throw std::runtime_error("no such claim");
}

TEST(PageClaims, RemovingTheNormIsToldByRetrievalOfModelsAtHand) {
  EXPECT_EQ(removed(-0.5, -0.4).holds, Holds::yes) << removed(-0.5, -0.4).measured;
  EXPECT_EQ(removed(0.05, 0.05).holds, Holds::no);
  EXPECT_EQ(removed(-0.5, 0.05).holds, Holds::conditionally);
  EXPECT_NE(removed(-0.5, 0.05).condition.find("length"), std::string::npos);
  EXPECT_EQ(removed(-0.5, -0.4, 0.01).holds, Holds::open);  // as trained it finds nothing
  const Findings without_model = Bench().find(demo_page);
  const Judgement& open = claim_with(without_model, "hurts sharp");
  EXPECT_EQ(open.holds, Holds::open);
  EXPECT_NE(open.measured.find("no pretrained model is on this machine"), std::string::npos);
}

// Runs whose parameters are those at the start; without the penalty attention adds something long to all tokens alike.
// What the loss is then is made up.
TrainMajority deep_runs(double with_penalty, double sharper) {
  return [=](const std::string&, const MajoritySettings& settings, const std::vector<std::string>& norms) {
    std::vector<MajorityRun> runs;
    for (const std::uint64_t seed : {1, 2, 3}) {
      MajorityRun& run = runs.emplace_back();
      run.id = {norms.front(), seed};
      run.spec = majority_encoder(settings, norms.front());
      run.parameters = initial_parameters(run.spec, 1);  // seeds differ by their sequences
      for (const ParameterSlot& slot : parameter_slots(run.spec)) {
        if (settings.keep_apart > 0 || !slot.name.ends_with("out_proj.bias")) continue;
        for (std::size_t i = 0; i < slot.size(); ++i) run.parameters[slot.offset + i] = i % 2 == 0 ? 5 : -5;
      }
      run.rows.emplace_back().test.loss = 9;  // before the first step, which does not count
      MajorityRow& row = run.rows.emplace_back();
      row.step = 100;
      row.test.loss = 1 + 0.1 * static_cast<double>(seed);
      if (settings.keep_apart > 0) row.test.loss += with_penalty + 0.001 * static_cast<double>(seed);
      if (settings.temperature > 0) row.test.loss += sharper + 0.001 * static_cast<double>(seed);
    }
    return runs;
  };
}

TEST(DeepClaims, AskForTokensFartherApartAndALowerLoss) {
  Bench bench;
  bench.train = deep_runs(-0.3, 0.2);
  const Findings better = bench.find(wu_deep);
  ASSERT_EQ(better.claims.size(), 3u);
  const Judgement& penalty = claim_with(better, "a penalty keeps apart");
  EXPECT_EQ(penalty.holds, Holds::yes) << penalty.measured;
  EXPECT_NE(
      penalty.why.find("It keeps μ/‖X‖ up with norms pre, 12 layers; post, 12 layers; sandwich, 12 layers."),
      std::string::npos)
      << penalty.why;
  EXPECT_NE(claim_with(better, "Sharper attention").holds, Holds::yes);
  EXPECT_EQ(better.tables.at(0).rows.size(), 10u);  // three placements, three remedies
  EXPECT_EQ(better.figures.at(0).name, "deep");
  bench.train = deep_runs(0.3, 0.2);
  const Findings worse = bench.find(wu_deep);
  EXPECT_EQ(claim_with(worse, "a penalty keeps apart").holds, Holds::no);
  EXPECT_NE(claim_with(worse, "stay farther apart").holds, Holds::yes);
}

// Trained language models whose held-out loss differs from LayerNorm's by so much, of three seeds.
Judgement learned_normals(double difference, double spread) {
  std::vector<TextEvidence> runs;
  for (const std::string norm : {"layernorm", "project:1", "project:2"}) {
    for (const std::uint64_t seed : {1, 2, 3}) {
      TextEvidence& run = runs.emplace_back();
      run.id = {norm, seed};
      for (const std::uint64_t step : {0, 800}) {
        TextRow& row = run.rows.emplace_back();
        row.step = step;
        row.held_out.emplace().loss = step == 0 ? 9 : 6 + 0.1 * static_cast<double>(seed);
        if (norm != "layernorm" && step > 0)
          row.held_out->loss += difference + spread * (static_cast<double>(seed) - 2);
      }
    }
  }
  const PaperPlan plan;
  const Executor executor(1);
  Evidence evidence{plan, executor};
  evidence.texts = runs;
  return judge(brody_followups_lm(), evidence).claims.at(0);
}

TEST(FollowUpsInALanguageModel, AreAnsweredByPairedLosses) {
  EXPECT_EQ(learned_normals(0.5, 0.01).verdict, "a higher loss than with the fixed normal 1");
  EXPECT_EQ(learned_normals(-0.5, 0.01).verdict, "a lower loss than with the fixed normal 1");
  EXPECT_EQ(learned_normals(0, 0.001).holds, Holds::answered);
  EXPECT_NE(learned_normals(0, 0.001).verdict.find("the same loss"), std::string::npos);
  EXPECT_EQ(learned_normals(0, 0.3).holds, Holds::open);
}

}  // namespace
}  // namespace normscope
