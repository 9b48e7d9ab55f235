// The colours of all figures and of the viewer, in one place: of words and of paper, on a light page and on a dark one.
//
// What a step does has the colours of Okabe and Ito, which people with any common colour blindness tell apart
// (M. Okabe, K. Ito, "Color Universal Design", 2008, jfly.uni-koeln.de/color), and further ones where eight do not
// suffice. No two meanings share a colour: tests/unit/gui/drawing/theme_test.cpp measures how far apart they are.
#pragma once

#include <cstdint>
#include <string_view>

#include "traces/figure/figure.h"

namespace memwall::palette {

enum class Page : std::uint8_t { light, dark };  // what a figure is drawn on

inline constexpr Color kOrange{0xe6, 0x9f, 0x00};
inline constexpr Color kSkyBlue{0x56, 0xb4, 0xe9};
inline constexpr Color kGreen{0x00, 0x9e, 0x73};
inline constexpr Color kYellow{0xf0, 0xe4, 0x42};
inline constexpr Color kBlue{0x00, 0x72, 0xb2};
inline constexpr Color kVermillion{0xd5, 0x5e, 0x00};
inline constexpr Color kPurple{0xcc, 0x79, 0xa7};

inline constexpr Color kBackground{0xff, 0xff, 0xff};
inline constexpr Color kText{0x22, 0x22, 0x22};
inline constexpr Color kFaintText{0x66, 0x66, 0x66};
inline constexpr Color kGrid{0xe4, 0xe4, 0xe4};
inline constexpr Color kAxis{0x88, 0x88, 0x88};
inline constexpr Color kBand{0xf6, 0xf6, 0xf6};
inline constexpr Color kGray{0x9a, 0x9a, 0x9a};
inline constexpr Color kLightGray{0xcf, 0xcf, 0xcf};
inline constexpr Color kLimit{0xb0, 0x20, 0x10};

// The colour of a word of memwall: a class of time ("compute", "copy"), a kind of storage ("activation"), a phase
// ("forward"). The same word has the same colour in every figure; an unknown word is gray.
Color color_of(std::string_view word, Page page = Page::light);

// What a colour of a light page is on a dark one: paper and ink change places, words get their colour for a dark page,
// and any other colour stays, but for grays, which are as far from the page there as here.
Color in_dark(Color light);

// Black or white, whichever is easier to read on `background`.
Color text_on(Color background);

}  // namespace memwall::palette
