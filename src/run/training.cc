#include "report/result_cards.h"
#include "report/run_files.h"
#include "report/training_page.h"
#include "result/json_writer.h"
#include "run/finished.h"
#include "run/training_marks.h"

namespace normscope {
namespace {

namespace fs = std::filesystem;

template <class Study>
CardedPage page(const RunDirectory& directory, const Study& study, const TrainingAbout& about) {
  std::string data = json_of(study.result, -1);
  data.pop_back();  // the newline
  const RunFiles run = read_run(directory.path());
  const auto& settings = object_of(object_of(run.config, "options"), "settings");
  CardedPage made =
      training_page(about, run.log.series, training_marks(settings), settings, study.result.made.made, data);
  made.score.cards = training_cards(study.result);
  return made;
}

// page: made after results.json, which it may be made of.
template <class Study, class MakePage>
bool write(const RunDirectory& directory, const Study& study, const MakePage& make_page) {
  const auto written = [&](const char* name) { return fs::exists(directory.path() / name); };
  if (study.time.steps == 0 && written("results.json") && written("report.html")) return false;
  directory.write("results.json", json_of(study.result));
  directory.write("report.html", render_html(make_page()));
  return true;
}

}  // namespace

const char* command_of(const TextPlan& plan) {
  return plan.settings.classifies() ? "train sentiment" : "train lm";
}

CardedPage page_of(const RunDirectory& directory, const MajorityStudy& study) {
  return page(directory, study, about_majority());
}

CardedPage page_of(const RunDirectory& directory, const TextTrainingStudy& study, const TextPlan& plan,
                   const TextsRead& texts) {
  TrainingAbout about = plan.settings.classifies() ? about_sentiment() : about_language();
  about.paragraphs.push_back(texts.sentence);
  if (plan.data.generated) about.paragraphs.emplace_back(kWrittenByAGrammar);
  for (std::string& sentence : troubles(study.training.runs(), kCheckpointFile))
    about.paragraphs.push_back(std::move(sentence));
  return page(directory, study, about);
}

bool write_results(const RunDirectory& directory, const MajorityStudy& study) {
  return write(directory, study, [&] { return page_of(directory, study); });
}
bool write_results(const RunDirectory& directory, const TextTrainingStudy& study, const TextPlan& plan,
                   const TextsRead& texts) {
  return write(directory, study, [&] { return page_of(directory, study, plan, texts); });
}

}  // namespace normscope
