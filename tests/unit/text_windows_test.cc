#include "normscope/text_windows.h"

#include <gtest/gtest.h>

#include "normscope/error.h"

namespace normscope {
namespace {

TEST(TextWindows, GiveEveryWindowTheSpecialTokensAndCoverTheText) {
  std::vector<Token> tokens = {{101, 0, 0, true}};
  for (std::uint32_t i = 0; i < 10; ++i) tokens.push_back({i, i, i + 1, false});
  tokens.push_back({102, 0, 0, true});
  const auto windows = text_windows(tokens, 5, 3);
  ASSERT_EQ(windows.size(), 3u);
  EXPECT_EQ(windows[1].ids(), (std::vector<std::uint32_t>{101, 3, 4, 5, 102}));
  EXPECT_EQ(windows[2].first, 6u);
  EXPECT_EQ(text_windows(tokens, 5, 3, 1).size(), 1u);
  EXPECT_EQ(text_windows(tokens, 50, 50).front().ids().size(), 12u);
  EXPECT_THROW(text_windows(tokens, 2, 1), InputError);
  EXPECT_EQ(text_windows(std::vector<Token>{}, 5, 5).front().tokens.size(), 0u);
}

}  // namespace
}  // namespace normscope
