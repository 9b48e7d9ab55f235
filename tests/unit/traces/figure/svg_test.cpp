// Is the SVG well-formed whatever the texts are, and the same bytes every time?
#include "traces/figure/svg.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <clocale>
#include <sstream>

#include "tests/support/xml_faults.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

std::string svg_of(const Figure& figure) {
  std::ostringstream out;
  write_svg(figure, out);
  return out.str();
}

Figure with(Item item) {
  Figure figure{100, 50, "a figure", {}};
  figure.add(std::move(item));
  return figure;
}

TEST(XmlCheck, FindsFaults) {  // negative control of the tests below
  EXPECT_EQ(fault_in_xml("<a><b/></a>"), "");
  EXPECT_NE(fault_in_xml("<a><b></a>"), "");
  EXPECT_NE(fault_in_xml("<a>&</a>"), "");
  EXPECT_NE(fault_in_xml("<a>\x01</a>"), "");
  EXPECT_NE(fault_in_xml("<a>\xff</a>"), "");
  EXPECT_NE(fault_in_xml("<a"), "");
}

TEST(Svg, StatesItsSizeInPoints) {
  const std::string svg = svg_of(Figure{960, 300.5, "", {}});
  EXPECT_NE(svg.find("width=\"960pt\" height=\"300.5pt\" viewBox=\"0 0 960 300.5\""), std::string::npos) << svg;
  EXPECT_EQ(fault_in_xml(svg), "");
}

TEST(Svg, DrawsEachKindOfItem) {
  EXPECT_NE(svg_of(with(Rectangle{1, 2.5, 3, 4, {0, 0x72, 0xb2}}))
                .find("<rect x=\"1\" y=\"2.5\" width=\"3\" height=\"4\" fill=\"#0072b2\"/>"),
            std::string::npos);
  EXPECT_NE(svg_of(with(Line{{0, 0}, {10, -0.001}, {1, 2, 3}, 1, true}))
                .find("x2=\"10\" y2=\"0\" stroke=\"#010203\" stroke-width=\"1\" stroke-dasharray"),
            std::string::npos);
  EXPECT_NE(svg_of(with(Polyline{{{0, 0}, {1, 1}}, {0, 0, 0}, 2}))
                .find("<polyline points=\"0,0 1,1\" fill=\"none\" stroke=\"#000000\""),
            std::string::npos);
  EXPECT_NE(svg_of(with(Polyline{{{0, 0}, {1, 1}, {1, 0}}, kNoColor, 1, {9, 9, 9, 51}}))
                .find("<polygon points=\"0,0 1,1 1,0\" fill=\"#090909\" fill-opacity=\"0.2\"/>"),
            std::string::npos);
  EXPECT_NE(svg_of(with(Text{{5, 6}, "a < b & \"c\"", 10, Anchor::end, {0, 0, 0}, true, 90}))
                .find("text-anchor=\"end\" font-weight=\"bold\" transform=\"rotate(-90 5 6)\">a &lt; b &amp; "
                      "&quot;c&quot;</text>"),
            std::string::npos);
}

TEST(Svg, GroupsCarryTitles) {
  Figure figure{10, 10, "", {}};
  figure.add(Rectangle{}, "kernel<float>");
  EXPECT_NE(svg_of(figure).find("<g><title>kernel&lt;float&gt;</title>\n<rect"), std::string::npos);
  EXPECT_EQ(fault_in_xml(svg_of(figure)), "");
}

TEST(Svg, WhatXmlCannotHoldIsReplaced) {
  const std::string replacement = "\xef\xbf\xbd";
  EXPECT_EQ(xml_text(std::string("a\0b", 3)), "a" + replacement + "b");
  EXPECT_EQ(xml_text("\x1b[0m"), replacement + "[0m");
  EXPECT_EQ(xml_text("\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80"), "\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80");
  EXPECT_EQ(xml_text("\xed\xa0\x80"), replacement + replacement + replacement);  // a surrogate
  EXPECT_EQ(xml_text("\xc0\xaf"), replacement + replacement);                    // overlong
  EXPECT_EQ(xml_text("\xe2\x82"), replacement + replacement);                    // cut short
  EXPECT_EQ(xml_text("\xef\xbf\xbf"), replacement);                              // U+FFFF
}

RC_GTEST_PROP(Svg, IsWellFormedWhateverTheTextsAre, ()) {
  Figure figure{10, 10, *rc::gen::arbitrary<std::string>(), {}};
  figure.add(Text{{0, 0}, *rc::gen::arbitrary<std::string>(), 10, Anchor::start, kNoColor},
             *rc::gen::arbitrary<std::string>());
  RC_ASSERT(fault_in_xml(svg_of(figure)) == "");
}

TEST(Svg, NumbersDoNotDependOnTheLocale) {
  const Figure figure = with(Line{{0.5, 1234567.25}, {1e-9, 3}, {0, 0, 0}});
  const std::string before = svg_of(figure);
  for (const char* name : {"de_DE.UTF-8", "fr_FR.UTF-8", ""}) std::setlocale(LC_ALL, name);
  EXPECT_EQ(svg_of(figure), before);
  EXPECT_NE(before.find("x1=\"0.5\" y1=\"1234567.25\" x2=\"0\""), std::string::npos) << before;
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
