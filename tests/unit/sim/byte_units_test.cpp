// Are sizes read and written in the units that people use?
#include "sim/byte_units.h"

#include <gtest/gtest.h>

namespace memwall {
namespace MEMWALL_TEST_FILE {

TEST(ByteUnits, SizesAreRead) {
  EXPECT_EQ(parse_bytes("0"), 0);
  EXPECT_EQ(parse_bytes("4096"), 4096);
  EXPECT_EQ(parse_bytes("1e9"), 1'000'000'000);
  EXPECT_EQ(parse_bytes("25MiB"), MiB(25));
  EXPECT_EQ(parse_bytes("24 GB"), 24'000'000'000);
  EXPECT_EQ(parse_bytes("1.5GiB"), GiB(3) / 2);
  EXPECT_EQ(parse_bytes("1kB"), 1000);
  EXPECT_EQ(parse_bytes("1KB"), 1000);
  EXPECT_EQ(parse_bytes("2TB"), 2'000'000'000'000);
  EXPECT_EQ(parse_bytes("2TiB"), GiB(2048));
  EXPECT_EQ(parse_bytes("1.6"), 2) << "rounded";
}

TEST(ByteUnits, WhatIsNoSizeIsNot) {
  for (const char* text : {"", "KiB", "-1", "-1e-300", "1 kib", "1KiBx", "1.2.3", "nan", "inf", "infB", "0x10", " 1",
                           "1e999", "5e18", "99999999999999TiB", "1 KiB "})
    EXPECT_FALSE(parse_bytes(text)) << text;
}

TEST(ByteUnits, UnitsAreKnownByName) {
  EXPECT_EQ(bytes_of_unit("B"), 1);
  EXPECT_EQ(bytes_of_unit("GB"), 1e9);
  EXPECT_EQ(bytes_of_unit("GiB"), 0x1p30);
  EXPECT_EQ(bytes_of_unit("gb"), 0);
}

TEST(ByteUnits, SizesAreWritten) {
  EXPECT_EQ(scaled_text(512, kDecimalBytes, 3), "512 B");
  EXPECT_EQ(scaled_text(39'343'900'000, kDecimalBytes, 4), "39.34 GB");
  EXPECT_EQ(scaled_text(999'900'000, kDecimalBytes, 3), "1.00 GB");
  EXPECT_EQ(scaled_text(524'288'000, kBinaryBytes, 3), "500 MiB");
  EXPECT_EQ(scaled_text(4 * 0x1p40, kBinaryBytes, 4, TrailingZeros::dropped), "4 TiB");
  EXPECT_EQ(exact_bytes_text(KiB(64)), "64 KiB");
  EXPECT_EQ(exact_bytes_text(MiB(1), ""), "1MiB");
  EXPECT_EQ(exact_bytes_text(12'345), "12345 B");
  EXPECT_EQ(exact_bytes_text(0), "0 B");
  EXPECT_EQ(exact_bytes_text(GiB(4096)), "4 TiB");
  EXPECT_EQ(gigabytes_text(12'345'000'000), "12.345 GB");
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
