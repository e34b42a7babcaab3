#include "oracle/compare.h"

#include <cstdio>
#include <exception>
#include <string_view>

#include "oracle/certificate.h"
#include "oracle/oracle.h"

namespace normscope::oracle {
namespace {

std::string numbers(std::span<const double> row) {
  std::string text;
  std::array<char, 80> buffer{};
  for (double x : row) {
    std::snprintf(buffer.data(), buffer.size(), " %.17g (%a)", x, x);
    text += buffer.data();
  }
  return text;
}

std::string describe(const Draw& draw, std::uint64_t seed, std::uint64_t index) {
  std::string text = "family \"" + std::string(key_families()[draw.family].name) + "\", seed " +
                     std::to_string(seed) + ", draw " + std::to_string(index) + ", n " +
                     std::to_string(draw.keys.rows()) + ", d " + std::to_string(draw.keys.cols()) +
                     ", offsets " + name_of(draw.offset_kind) + ", rank policy " +
                     (draw.options.rank == RankPolicy::full ? "full" : "numerical") +
                     (draw.options.exact ? ", exact\n" : "\n");
  for (std::size_t j = 0; j < draw.keys.rows(); ++j) {
    text += "  key " + std::to_string(j) + ":" + numbers(draw.keys[j]);
    if (!draw.offsets.empty()) text += "  offset" + numbers({&draw.offsets[j], 1});
    text += "\n";
  }
  return text;
}

std::string describe(const KeyVerdict& verdict) {
  std::string text = name_of(verdict.verdict);
  if (!verdict.witness.empty()) text += ", witness" + numbers(verdict.witness);
  const auto list = [&](const char* name, const std::vector<CoverTerm>& terms) {
    if (terms.empty()) return;
    text += std::string(", ") + name;
    for (const CoverTerm& term : terms)
      text += " " + std::to_string(term.index) + ":" + numbers({&term.weight, 1});
  };
  list("cover", verdict.cover);
  list("interior", verdict.interior);
  if (!verdict.tied_with.empty()) text += ", tied with";
  for (std::size_t j : verdict.tied_with) text += " " + std::to_string(j);
  if (verdict.verified) text += ", verified";
  if (verdict.exact_path) text += ", exact path";
  return text;
}

}  // namespace

Draw make_draw(std::uint64_t seed, std::uint64_t index) {
  const auto families = key_families();
  Random random(seed, index);
  Draw draw;
  draw.family = index % families.size();
  draw.options.exact = index / families.size() % 2 == 1;
  draw.options.rank = random.below(4) == 0 ? RankPolicy::numerical : RankPolicy::full;
  draw.options.unit_roundoff = families[draw.family].unit_roundoff;
  draw.options.margins = random.below(2) == 0 ? Margins::bound : Margins::exact;
  draw.large = random.below(600) == 0;
  Shape shape = draw.large ? draw_large_shape(random) : draw_shape(random);
  // Keys that rounding cannot tell apart are decided by integers, of thousands of bits in many dimensions:
  // hundreds of such keys take many minutes, and no other path of the engine.
  const bool large_and_wide = draw.large && shape.d > 8;
  const std::string_view group = families[draw.family].group;
  if (large_and_wide && group != "random" && group != "norms") shape.d = 8;
  draw.keys = families[draw.family].draw(random, shape.n, shape.d);
  constexpr std::array kinds = {OffsetKind::none,   OffsetKind::none,   OffsetKind::none,
                                OffsetKind::none,   OffsetKind::random, OffsetKind::integer,
                                OffsetKind::affine, OffsetKind::equal};
  draw.offset_kind = kinds[random.below(kinds.size())];
  if (large_and_wide && draw.offset_kind == OffsetKind::affine) draw.offset_kind = OffsetKind::random;
  draw.offsets = draw_offsets(random, draw.keys.view(), draw.offset_kind);
  return draw;
}

Tally& Tally::operator+=(const Tally& other) {
  add_fields(*this, other, &Tally::keys, &Tally::selectable, &Tally::tied, &Tally::unselectable,
             &Tally::wrong, &Tally::invalid, &Tally::exact_path, &Tally::rounded, &Tally::reduced);
  return *this;
}

Comparison compare_draw(std::uint64_t seed, std::uint64_t index) {
  Comparison comparison;
  Tally& tally = comparison.tally;
  const Draw draw = make_draw(seed, index);
  comparison.family = draw.family;
  const std::size_t n = draw.keys.rows();
  const auto fail = [&](const std::string& what) {
    comparison.failures.push_back(what + "\n" + describe(draw, seed, index));
  };

  KeySet decided;
  try {
    decided = decide_keys(draw.keys.view(), draw.offsets, draw.options, Executor(1));
  } catch (const std::exception& error) {
    tally.keys = tally.wrong = n;
    fail(std::string("decide_keys threw: ") + error.what());
    return comparison;
  }
  const ExactKeys exact(draw.keys.view(), draw.offsets);
  if (decided.keys.size() != n) {
    tally.keys = tally.wrong = n;
    fail("decide_keys returned " + std::to_string(decided.keys.size()) + " verdicts");
    return comparison;
  }
  // Of a set that lost directions to rounding, verdicts and certificates are exact on the coordinates kept,
  // but for witnesses of selectable keys, which are queries on all of them.
  const bool reduced = decided.rank < exact.rank();
  if (reduced && (draw.options.rank == RankPolicy::full || decided.kept.size() != decided.rank)) {
    tally.keys = tally.wrong = n;
    fail("decided in rank " + std::to_string(decided.rank) + ", on " + std::to_string(decided.kept.size()) +
         " coordinates");
    return comparison;
  }
  const Matrix<double> kept = on_coordinates(draw.keys, decided.kept);
  const ExactKeys on_kept(reduced ? kept.view() : draw.keys.view(), draw.offsets);
  if (reduced) tally.reduced = n;

  for (std::size_t i = 0; i < n; ++i) {
    const KeyVerdict& key = decided.keys[i];
    const Verdict expected = draw.large ? key.verdict : oracle_verdict(on_kept, i);
    ++tally.keys;
    ++(expected == Verdict::selectable ? tally.selectable
       : expected == Verdict::tied     ? tally.tied
                                       : tally.unselectable);
    tally.exact_path += key.exact_path;
    if (key.verdict != expected) {
      ++tally.wrong;
      fail("key " + std::to_string(i) + " is " + name_of(expected) + ", decided as " + describe(key));
      continue;
    }
    CertificateNotes notes;
    const bool on_all = !reduced || key.verdict == Verdict::selectable;
    KeyVerdict seen = key;
    const auto keep = [&](auto& witness) {
      if (witness.empty()) return;
      for (std::size_t c = 0; c < decided.kept.size(); ++c) witness[c] = witness[decided.kept[c]];
      witness.resize(decided.kept.size());
    };
    if (!on_all) keep(seen.witness), keep(seen.exact_witness);
    if (const std::string problem = check_certificate(on_all ? exact : on_kept, i, seen, &notes);
        !problem.empty()) {
      ++tally.invalid;
      fail("key " + std::to_string(i) + ": " + problem + "; decided as " + describe(key));
    }
    tally.rounded += notes.rounded_witness;
  }
  return comparison;
}

}  // namespace normscope::oracle
