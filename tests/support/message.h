#pragma once
// What an error says.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "normscope/error.h"

namespace normscope {

template <class Thrown = InputError, class Call>
std::string message_of(const Call& call) {
  try {
    call();
  } catch (const Thrown& error) {
    return error.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}

inline void expect_mentions(const std::string& message, const std::vector<std::string>& facts) {
  for (const std::string& fact : facts)
    EXPECT_NE(message.find(fact), std::string::npos) << "\"" << fact << "\" is missing in: " << message;
}

}  // namespace normscope
