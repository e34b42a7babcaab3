#include "report/ablate_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/collapse_page.h"

namespace normscope {
namespace {

struct Effect {
  double LayerEffect::*value;
  const char *name, *title, *symbol;
  bool log = false;
};
constexpr Effect kEffects[] = {
    {&LayerEffect::change, "change", "Hidden states: relative change", "‖H′ − H‖/‖H‖", true},
    {&LayerEffect::cosine, "cosine", "Hidden states: cosine with those as trained", "cosine"},
    {&LayerEffect::entropy, "entropy", "Attention: entropy", "nats"},
    {&LayerEffect::largest_weight, "largest_weight", "Attention: highest weight", "weight"},
    {&LayerEffect::norm, "norm", "Norm of what enters attention", "‖h‖", true},
};

std::string number(double value) {
  return std::isnan(value) ? "-" : fmt::format("{:.3g}", value);
}

std::string shown(const Interval& interval) {
  if (interval.count == 0 || std::isnan(interval.mean)) return "-";
  if (std::isnan(interval.low)) return number(interval.mean);
  return fmt::format("{:.3g} ± {:.2g}", interval.mean, interval.half_width());
}

std::string signed_shown(const Interval& interval) {
  const std::string text = shown(interval);
  return interval.mean > 0 && text != "-" ? "+" + text : text;
}

// Mean over the layers, of each window.
Interval over_layers(const AblateRow& row, double LayerEffect::*effect) {
  std::vector<double> values;
  for (const auto& window : row.windows) {
    double sum = 0;
    for (const LayerEffect& layer : window) sum += layer.*effect;
    values.push_back(sum / static_cast<double>(window.size()));
  }
  return mean_interval(values);
}

const char* loss_name(Ablation::Loss loss) {
  return loss == Ablation::Loss::masked_token ? "masked-token loss" : "loss";
}

CurveFigure layer_figure(const AblateRun& run, std::span<const Effect> effects) {
  CurveFigure figure;
  for (const Effect& effect : effects) {
    CurveFigure::Panel& panel = figure.panels.emplace_back();
    panel.title = effect.title;
    panel.x_label = "layer";
    panel.y_label = effect.symbol;
    panel.log_y = effect.log;
    for (const AblateRow& row : run.ablation.rows) {
      CurveFigure::Curve curve;
      curve.name = row.name;
      const bool band = row.windows.size() > 1;
      for (std::size_t layer = 0; layer < run.layers && !row.windows.empty(); ++layer) {
        const Interval interval = row.mean(effect.value, layer);
        curve.x.push_back(static_cast<double>(layer));
        curve.y.push_back(interval.mean);
        if (!band) continue;
        curve.low.push_back(effect.log ? std::max(interval.low, interval.mean / 10) : interval.low);
        curve.high.push_back(interval.high);
      }
      if (!curve.x.empty()) panel.curves.push_back(std::move(curve));
    }
  }
  return figure;
}

std::string percent(double share) {
  return fmt::format("{:.1f} %", 100 * share);
}

// "10 %"
std::string tolerated_share(const Ablation& ablation) {
  return fmt::format("{:g} %", 100 * ablation.tolerated);
}

std::string range_of(const std::vector<std::size_t>& layers, std::size_t count) {
  if (layers.size() == count) return "all layers";
  return fmt::format("layer{} {}", layers.size() == 1 ? "" : "s", fmt::join(layers, ", "));
}

const char* words_for(const std::string& measure) {
  if (measure == "gain") return "copy gain: loss of the first copy less that of the second, nats";
  if (measure == "copy") return "copy: the right token leads those of the prompt";
  if (measure == "lookup") return "lookup: the right value leads those of the prompt";
  return "the best head finds the token";
}

}  // namespace

std::vector<std::vector<std::string>> ablate_table(const AblateRun& run) {
  const Ablation& ablation = run.ablation;
  const AblateRow& trained = ablation.rows.front();
  const bool loss = ablation.loss != Ablation::Loss::none, asks = !trained.copy.choice.empty(),
             gains = !trained.first_loss.empty(), probe = !trained.finds.share.empty();
  std::vector<std::vector<std::string>> rows = {{"norm before attention"}};
  const auto head = [&](const char* title) { rows[0].emplace_back(title); };
  if (loss) {
    head(loss_name(ablation.loss));
    head("change");
  }
  head("hidden change");
  head("cosine");
  head("entropy");
  head("highest weight");
  if (gains) head("copy gain");
  if (asks) {
    head("copy");
    head("lookup");
  }
  if (probe) head("head finds");
  for (const AblateRow& row : ablation.rows) {
    std::vector<std::string> cells = {row.name};
    const bool failed = !row.failure.empty();
    const auto add = [&](const Interval& interval) { cells.push_back(failed ? "-" : shown(interval)); };
    if (loss) {
      add(mean_interval(row.losses));
      cells.push_back(failed || !row.change ? "-"
                                            : signed_shown(mean_difference(trained.losses, row.losses)));
    }
    add(failed ? Interval{} : row.mean(&LayerEffect::change, run.layers - 1));
    add(failed ? Interval{} : row.mean(&LayerEffect::cosine, run.layers - 1));
    add(over_layers(row, &LayerEffect::entropy));
    add(over_layers(row, &LayerEffect::largest_weight));
    if (gains) add(mean_interval(row.copy_gain()));
    if (asks) {
      add(mean_interval(row.copy.choice));
      add(mean_interval(row.lookup.choice));
    }
    if (probe) {
      cells.push_back(failed ? "-"
                             : fmt::format("{} ({}.{})", shown(mean_interval(row.finds.share)),
                                           row.finds.layer, row.finds.head));
    }
    rows.push_back(std::move(cells));
  }
  return rows;
}

std::vector<std::vector<std::string>> ablate_layer_table(const AblateRun& run) {
  std::vector<std::vector<std::string>> rows = {{"norm before attention", "layer"}};
  for (const Effect& effect : kEffects) rows[0].emplace_back(effect.title);
  rows[0].emplace_back("constant");
  for (const AblateRow& row : run.ablation.rows) {
    for (std::size_t layer = 0; layer < run.layers && !row.windows.empty(); ++layer) {
      std::vector<std::string> cells = {row.name, std::to_string(layer)};
      for (const Effect& effect : kEffects) cells.push_back(shown(row.mean(effect.value, layer)));
      cells.push_back(row.rescale.empty() ? "-" : number(row.rescale[layer]));
      rows.push_back(std::move(cells));
    }
  }
  return rows;
}

std::vector<std::vector<std::string>> ablate_claim_table(const AblateRun& run) {
  std::vector<std::vector<std::string>> rows = {{"norm before attention", "retrieval", "chance", "as trained",
                                                 "changed", "difference (95 %)", "verdict"}};
  for (std::size_t r = 1; r < run.ablation.rows.size(); ++r) {
    for (const RetrievalChange& change : retrieval_changes(run.ablation, r)) {
      rows.push_back({run.ablation.rows[r].name, words_for(change.measure),
                      change.chance > 0 ? percent(change.chance) : "0", shown(change.trained),
                      shown(change.changed), signed_shown(change.difference), name_of(change.verdict)});
    }
  }
  if (rows.size() == 1) rows.clear();
  return rows;
}

std::vector<std::string> ablate_sentences(const AblateRun& run) {
  const Ablation& ablation = run.ablation;
  std::vector<std::string> sentences;
  const NormSpec& norm = ablation.trained.front();
  const bool drops = ablation.rows.back().change && ablation.rows.back().change->drop_affine;
  sentences.push_back(fmt::format(
      "{} ({}, {} layers of {} heads, width {}) on {}: {} window{}, {} tokens. Its norm in front of "
      "attention "
      "is {}; replaced in {}{}.",
      run.model, run.family, run.layers, run.heads, run.width, run.text, run.windows,
      run.windows == 1 ? "" : "s", run.tokens, name_of(norm), range_of(ablation.layers, run.layers),
      !norm.affine ? ""
      : drops      ? ", learned gain and bias dropped"
                   : ", learned gain and bias kept"));
  if (run.post) {
    sentences.emplace_back(
        "Norms come after a block here: the one in front of attention is the last of the layer before (of "
        "the "
        "embeddings, for layer 0), and the skip path takes what it leaves too.");
  }
  const bool rescaled = std::any_of(ablation.rows.begin(), ablation.rows.end(),
                                    [](const AblateRow& row) { return !row.rescale.empty(); });
  if (rescaled) {
    sentences.emplace_back(
        "Rescaled: one constant per layer gives what enters attention the mean norm (before the bias) that "
        "it has "
        "on this text as trained.");
  }
  if (ablation.loss == Ablation::Loss::next_token) {
    sentences.emplace_back("Loss: of next tokens, in nats, mean ± 95 % interval over windows.");
  } else if (ablation.loss == Ablation::Loss::masked_token) {
    sentences.emplace_back(
        "Loss: of the 15 % of tokens that are hidden by the mask token, the same in every row, in nats; mean "
        "± "
        "95 % interval over windows.");
  }
  if (ablation.probe_length > 0) {
    const bool asks = !ablation.rows.front().copy.choice.empty();
    sentences.push_back(fmt::format(
        "Probe: {} prompts of each kind, up to {} random tokens {}, twice.{} Head finds: the share of tokens "
        "of "
        "the second copy from which the best head (layer.head, its own in every row) looks most, itself "
        "apart, "
        "at {}; chance {}.",
        run.prompts, ablation.probe_length,
        ablation.probe_from_vocabulary ? "of the vocabulary" : "of the text",
        asks ? fmt::format(
                   "{} Copy and lookup: the right token leads those of the prompt; chance {} and {}.",
                   run.causal ? " Copy gain: loss of first copies less that of second ones, in nats." : "",
                   percent(ablation.rows.front().copy.chance), percent(ablation.rows.front().lookup.chance))
             : "",
        run.causal ? "the token after its earlier copy" : "its earlier copy",
        percent(ablation.rows.front().finds.chance)));
  }
  for (const AblateRow& row : ablation.rows) {
    if (!row.failure.empty()) sentences.push_back(fmt::format("{}: {}", row.name, row.failure));
  }
  for (const auto* notes : {&ablation.notes, &run.notes}) {
    sentences.insert(sentences.end(), notes->begin(), notes->end());
  }
  return sentences;
}

std::string ablate_verdict(const AblateRun& run) {
  std::string text;
  for (std::size_t r = 1; r < run.ablation.rows.size(); ++r) {
    const AblateRow& row = run.ablation.rows[r];
    if (!row.failure.empty()) continue;
    std::string found;
    const std::vector<RetrievalChange> changes = retrieval_changes(run.ablation, r);
    for (const auto& [verdict, words] :
         {std::pair(RetrievalVerdict::worse, std::string("worse")),
          std::pair(RetrievalVerdict::not_worse,
                    fmt::format("no worse by {} of what it has above chance", tolerated_share(run.ablation))),
          std::pair(RetrievalVerdict::not_shown, std::string("no difference these prompts can show"))}) {
      std::vector<std::string> facts;
      for (const RetrievalChange& change : changes) {
        if (change.verdict != verdict) continue;
        facts.push_back(
            fmt::format("{} {:.3g} → {:.3g}, {}", change.measure == "gain" ? "copy gain" : change.measure,
                        change.trained.mean, change.changed.mean, signed_shown(change.difference)));
      }
      if (!facts.empty())
        found += fmt::format("{}{} ({})", found.empty() ? "" : "; ", words, fmt::join(facts, "; "));
    }
    if (!found.empty()) text += fmt::format("{}{}: retrieval {}.", text.empty() ? "" : " ", row.name, found);
  }
  if (text.empty())
    return "On the probe the model as trained does not retrieve beyond doubt (its interval reaches below "
           "twice "
           "the chance, or a single prompt has none), so that a change cannot be judged.";
  return text;
}

std::string ablate_csv(const AblateRun& run) {
  std::string text = "row,layer,measure,mean,low,high\n";
  for (const AblateRow& row : run.ablation.rows) {
    for (std::size_t layer = 0; layer < run.layers && !row.windows.empty(); ++layer) {
      for (const Effect& effect : kEffects) {
        const Interval interval = row.mean(effect.value, layer);
        text += fmt::format("\"{}\",{},{},{},", row.name, layer, effect.name, interval.mean);
        text += std::isnan(interval.low) ? ",\n" : fmt::format("{},{}\n", interval.low, interval.high);
      }
    }
  }
  return text;
}

Page ablate_page(const AblateRun& run, const Provenance& provenance, std::string data) {
  Page page;
  page.title = fmt::format("{}: another norm in front of attention", run.model);
  page.verdict = ablate_verdict(run);
  page.paragraphs = ablate_sentences(run);
  page.claims = {"Claim: without the norm, retrieval that needs sharp attention gets worse",
                 ablate_claim_table(run)};
  const auto effects = std::span(kEffects);
  const auto add = [&](const char* name, const char* title, std::span<const Effect> of, const char* caption) {
    page.figures.push_back(to_figure(name, title, caption, layer_figure(run, of)));
    page.figures.back().settings = settings_text(provenance, run.model + " on " + run.text);
  };
  add("hidden", "Hidden states after each layer, beside those as trained", effects.first(2),
      "Means over windows; bands are 95 % intervals.");
  add("attention", "Attention weights and what enters attention", effects.subspan(2),
      "Means over heads, tokens and windows; bands are 95 % intervals over windows.");
  page.tables.push_back(
      {"Summary (hidden states: last layer; attention: mean over layers)", ablate_table(run)});
  page.tables.push_back({"Layer by layer", ablate_layer_table(run)});
  page.footer = settings_text(provenance);
  page.data = std::move(data);
  return page;
}

}  // namespace normscope
