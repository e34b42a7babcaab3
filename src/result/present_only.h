#pragma once
// A visitor of describe.h that looks at the fields that are there, and at no others, says only what to do with one.
#include "result/describe.h"

namespace normscope {

template <class Visitor>
struct PresentOnly {
  template <class Field>
  void when(bool present, const char* name, const Field& field, const char* sentence,
            const Facts& facts = {}) {
    auto& visit = static_cast<Visitor&>(*this);
    if (present) visit(name, field, sentence, facts);
  }
  template <class Field>
  void of_kind(bool kind, bool present, const char* name, const Field& field, const char* sentence,
               const Facts& facts = {}) {
    when(kind && present, name, field, sentence, facts);
  }
};

}  // namespace normscope
