// Damage to a text, for fuzz tests: what a broken disk, a cut transfer or a hostile author would do.
#pragma once

#include <algorithm>
#include <cstddef>
#include <random>
#include <string>

namespace memwall {

// One to four changes at random places: a bit flipped, a stretch removed, doubled, moved or cut off
// to the end, a number replaced by an extreme one.
inline std::string damaged(std::string text, std::mt19937_64& random) {
  static const std::string kNumbers[] = {"-1",         "0", "9223372036854775807", "18446744073709551616", "1e308",
                                         "4294967296", ""};
  const int changes = 1 + static_cast<int>(random() % 4);
  for (int change = 0; change < changes && !text.empty(); ++change) {
    const std::size_t at = random() % text.size();
    const std::size_t length = std::min<std::size_t>(text.size() - at, 1 + random() % 40);
    switch (random() % 6) {
      case 0:
        text[at] = static_cast<char>(text[at] ^ (1 << (random() % 8)));
        break;
      case 1:
        text.erase(at, length);
        break;
      case 2:
        text.insert(at, text.substr(at, length));
        break;
      case 3: {
        const std::string piece = text.substr(at, length);
        text.erase(at, length);
        text.insert(text.empty() ? 0 : random() % text.size(), piece);
        break;
      }
      case 4:
        if (random() % 8 == 0) text.resize(at);
        break;
      default: {
        const std::size_t digit = text.find_first_of("0123456789", at);
        if (digit == std::string::npos) break;
        const std::size_t end = text.find_first_not_of("0123456789", digit);
        text.replace(digit, (end == std::string::npos ? text.size() : end) - digit,
                     kNumbers[random() % std::size(kNumbers)]);
      }
    }
  }
  return text;
}

}  // namespace memwall
