#include "core/printable.h"

#include <gtest/gtest.h>

namespace normscope {
namespace {

TEST(Printable, WhatCouldMoveACursorIsSpelledOut) {
  EXPECT_EQ(printable("a\x1b[2Jb\r\n\x7f"), "a\\x1b[2Jb\\x0d\\x0a\\x7f");
  EXPECT_EQ(printable("\xc2\x9b"
                      "31m"),
            "\\xc2\\x9b31m");  // the same escape as one character
}

TEST(Printable, TextStaysAndBytesThatAreNoneAreSpelledOut) {
  EXPECT_EQ(printable("é – 字 🙂"), "é – 字 🙂");
  EXPECT_EQ(printable("\xff\xfe"
                      "a\xc3"),
            "\\xff\\xfea\\xc3");
  EXPECT_EQ(printable("\xe2\x82("), "\\xe2\\x82(");
}

}  // namespace
}  // namespace normscope
