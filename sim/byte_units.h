// Sizes in bytes as people read and write them: "25MiB", "24 GB", "1e9".
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "sim/number_text.h"
#include "sim/units.h"

namespace memwall {

inline constexpr std::array kDecimalBytes{ScaledUnit{1, "B"}, ScaledUnit{1e3, "kB"}, ScaledUnit{1e6, "MB"},
                                          ScaledUnit{1e9, "GB"}, ScaledUnit{1e12, "TB"}};
inline constexpr std::array kBinaryBytes{ScaledUnit{1, "B"}, ScaledUnit{0x1p10, "KiB"}, ScaledUnit{0x1p20, "MiB"},
                                         ScaledUnit{0x1p30, "GiB"}, ScaledUnit{0x1p40, "TiB"}};

// The bytes of a unit of these two lists; 0 where it is none.
double bytes_of_unit(std::string_view name);

// A number from 0 to 2^62 with a unit or, in bytes, without; blanks may stand between them, and "KB" for kB. Rounded
// to whole bytes. Nothing for any other text.
std::optional<Bytes> parse_bytes(std::string_view text);

// Exact, in the largest binary unit that divides it: "64 KiB", "12345 B". REQUIRES: bytes >= 0.
std::string exact_bytes_text(Bytes bytes, std::string_view between = " ");
// "12.345 GB"
std::string gigabytes_text(Bytes bytes);

}  // namespace memwall
