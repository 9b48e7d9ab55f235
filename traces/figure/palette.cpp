#include "traces/figure/palette.h"

#include <utility>

namespace memwall::palette {

Color color_of(std::string_view word) {
  static constexpr std::pair<std::string_view, Color> words[] = {// classes of time
                                                                 {"compute", kBlue},
                                                                 {"recompute", kSkyBlue},
                                                                 {"copy", kOrange},
                                                                 {"collective", kPurple},
                                                                 {"storage", kVermillion},
                                                                 {"allocator", kYellow},
                                                                 {"fault", {0x33, 0x33, 0x33}},
                                                                 {"host", kGray},
                                                                 {"idle", {0xe2, 0xe2, 0xe2}},
                                                                 // kinds of storage
                                                                 {"parameter", kBlue},
                                                                 {"gradient", kOrange},
                                                                 {"optimizer_state", kGreen},
                                                                 {"activation", kSkyBlue},
                                                                 {"input", kYellow},
                                                                 {"workspace", kPurple},
                                                                 {"communication_buffer", kVermillion},
                                                                 {"unknown", kLightGray},
                                                                 // what an allocator adds to them
                                                                 {"rounding", {0x70, 0x70, 0x70}},
                                                                 {"pending", {0x40, 0x40, 0x40}},
                                                                 // phases and what else a lane shows
                                                                 {"forward", {0x00, 0x42, 0x78}},
                                                                 {"backward", kGreen},
                                                                 {"optimizer", kYellow},
                                                                 {"kernel", kBlue},
                                                                 {"memset", kLightGray},
                                                                 {"wait", {0xdd, 0xdd, 0xdd}},
                                                                 {"host_work", kGray},
                                                                 // classes of operators; "optimizer" is a phase too
                                                                 {"gemm", kBlue},
                                                                 {"convolution", {0x00, 0x42, 0x78}},
                                                                 {"attention", kPurple},
                                                                 {"normalization", kGreen},
                                                                 {"elementwise", kOrange},
                                                                 {"reduction", kVermillion},
                                                                 {"embedding", kSkyBlue},
                                                                 {"memory", {0x70, 0x70, 0x70}},
                                                                 {"other", kLightGray}};
  for (const auto& [name, color] : words)
    if (name == word) return color;
  return kGray;
}

Color text_on(Color background) {
  // Relative luminance with the weights of ITU-R BT.709, on encoded values: good enough for two choices.
  const double light = 0.2126 * background.red + 0.7152 * background.green + 0.0722 * background.blue;
  return light > 140 ? Color{0, 0, 0} : Color{255, 255, 255};
}

}  // namespace memwall::palette
