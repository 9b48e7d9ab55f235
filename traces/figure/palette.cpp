#include "traces/figure/palette.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace memwall::palette {
namespace {

struct WordColor {
  std::string_view word;
  Color light;
  std::optional<Color> dark{};  // where the light one would not stand out from a dark page
};

constexpr WordColor kWords[] = {
    // what a step does: phases, classes of time, calls
    {"compute", kBlue, Color{0x14, 0x83, 0xcc}},
    {"forward", {0x00, 0x42, 0x78}, Color{0x2b, 0x5a, 0x94}},
    {"recompute", kSkyBlue, Color{0x5f, 0xbc, 0xf0}},
    {"backward", kGreen},
    {"optimizer", kYellow},
    {"copy", kOrange},
    {"collective", kPurple},
    {"storage", kVermillion},
    {"allocator", {0x7c, 0x33, 0x00}, Color{0x92, 0x57, 0x2e}},
    {"fault", {0x59, 0x00, 0x22}, Color{0x8f, 0x00, 0x45}},
    {"host", kGray},
    {"idle", {0xe2, 0xe2, 0xe2}, Color{0x4a, 0x4c, 0x50}},
    {"waiting", {0xd8, 0xcd, 0xff}, Color{0x5a, 0x50, 0x6e}},  // a call that stands and waits
    {"event", {0x70, 0xd7, 0xb7}},                             // waiting for work of another stream
    {"flow", {0x1b, 0x7c, 0x81}},                              // over a link, of copies and kernels alike
    // kinds of storage, and what an allocator adds to them
    {"parameter", {0x7a, 0x47, 0xc8}},
    {"gradient", {0xff, 0x9e, 0x6a}},
    {"optimizer_state", {0x7b, 0x8f, 0x01}},
    {"activation", {0xa9, 0xed, 0xff}},
    {"input", {0xff, 0xe7, 0xb6}},
    {"workspace", {0xa7, 0x8e, 0xf0}},
    {"communication_buffer", {0xea, 0x5c, 0x6f}},
    {"unknown", {0xb9, 0xc4, 0xac}},
    {"rounding", {0x51, 0x5e, 0x44}, Color{0x73, 0x84, 0x5e}},
    {"pending", {0x4f, 0x4a, 0x57}, Color{0x8e, 0x82, 0x92}},
    // other words for what is above
    {"kernel", kBlue, Color{0x14, 0x83, 0xcc}},
    {"memset", kBlue, Color{0x14, 0x83, 0xcc}},
    {"storage_io", kVermillion},
    {"host_work", kGray},
    {"synchronize", {0xd8, 0xcd, 0xff}, Color{0x5a, 0x50, 0x6e}},
    {"wait", {0xd8, 0xcd, 0xff}, Color{0x5a, 0x50, 0x6e}},
    // classes of operators; "optimizer" is a phase too
    {"gemm", {0x5a, 0x7e, 0xff}},
    {"convolution", {0x1e, 0x27, 0xc9}},
    {"attention", {0xe4, 0x90, 0xf0}},
    {"normalization", {0x6c, 0xae, 0x60}},
    {"elementwise", {0xba, 0x7e, 0x24}},
    {"reduction", {0xa5, 0x4e, 0x42}},
    {"embedding", {0x36, 0xc3, 0xc3}},
    {"memory", {0x6c, 0x6f, 0x78}},
    {"other", {0xcc, 0xbd, 0xa8}}};

// Paper and ink. The dark page is darker than usual: dark blue is seen on it.
constexpr std::pair<Color, Color> kPaper[] = {
    {kBackground, {0x15, 0x16, 0x18}}, {kBand, {0x22, 0x24, 0x27}}, {kText, {0xec, 0xec, 0xec}},
    {kFaintText, {0xa8, 0xac, 0xb2}},  {kGrid, {0x2f, 0x32, 0x36}}, {kAxis, {0x7c, 0x80, 0x86}},
    {kLightGray, {0x4a, 0x4d, 0x52}},  {kGray, kGray},              {kLimit, {0xff, 0x8a, 0x8a}}};

}  // namespace

Color color_of(std::string_view word, Page page) {
  for (const WordColor& color : kWords)
    if (color.word == word) return page == Page::dark ? color.dark.value_or(color.light) : color.light;
  return kGray;
}

Color in_dark(Color light) {
  constexpr int kGrayest = 12;  // difference of the channels of what counts as gray
  const auto with_opacity = [&](Color color) {
    color.opacity = light.opacity;
    return color;
  };
  const auto same = [&](Color other) { return with_opacity(other) == light; };
  for (const auto& [paper, dark] : kPaper)
    if (same(paper)) return with_opacity(dark);
  for (const WordColor& color : kWords)
    if (same(color.light)) return with_opacity(color.dark.value_or(color.light));
  const auto [low, high] = std::minmax({light.red, light.green, light.blue});
  if (high - low > kGrayest) return light;
  const Color page = kPaper[0].second, ink = kPaper[2].second;
  const auto inverted = [&](int value, int from, int to) {
    return static_cast<std::uint8_t>(from + (255 - value) * (to - from) / 255);
  };
  return {inverted(light.red, page.red, ink.red), inverted(light.green, page.green, ink.green),
          inverted(light.blue, page.blue, ink.blue), light.opacity};
}

Color text_on(Color background) {
  // Relative luminance with the weights of ITU-R BT.709, on encoded values: good enough for two choices.
  const double light = 0.2126 * background.red + 0.7152 * background.green + 0.0722 * background.blue;
  return light > 140 ? Color{0, 0, 0} : Color{255, 255, 255};
}

}  // namespace memwall::palette
