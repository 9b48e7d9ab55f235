// What tests look for in a figure.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "traces/figure/figure.h"
#include "traces/figure/text_metrics.h"

namespace memwall {

template <class T>
std::vector<T> all_of(const Figure& figure) {
  std::vector<T> found;
  for (const Item& item : figure.items)
    if (const T* one = std::get_if<T>(&item)) found.push_back(*one);
  return found;
}

inline const Text* text_with(const std::vector<Text>& texts, const std::string& part) {
  const auto found =
      std::find_if(texts.begin(), texts.end(), [&](const Text& t) { return t.text.find(part) != std::string::npos; });
  return found == texts.end() ? nullptr : &*found;
}

inline bool has_title(const Figure& figure, const std::string& part) {
  const std::vector<GroupBegin> groups = all_of<GroupBegin>(figure);
  return std::any_of(groups.begin(), groups.end(),
                     [&](const GroupBegin& g) { return g.title.find(part) != std::string::npos; });
}

struct Box {
  double left, right, top, bottom;
};

inline Box box_of(const Text& t) {
  const double width = text_width(t.text, t.size, t.bold);
  const double left = t.anchor == Anchor::start    ? t.at.x
                      : t.anchor == Anchor::middle ? t.at.x - width / 2
                                                   : t.at.x - width;
  return {left, left + width, t.at.y - 0.75 * t.size, t.at.y + 0.2 * t.size};
}

// Every text within the figure, and no two over each other.
inline void expect_legible(const Figure& figure) {
  const std::vector<Text> texts = all_of<Text>(figure);
  for (std::size_t i = 0; i < texts.size(); ++i) {
    if (texts[i].angle != 0) continue;
    const Box a = box_of(texts[i]);
    EXPECT_GE(a.left, -0.5) << texts[i].text;
    EXPECT_LE(a.right, figure.width + 0.5) << texts[i].text;
    EXPECT_GE(a.top, 0) << texts[i].text;
    EXPECT_LE(a.bottom, figure.height) << texts[i].text;
    for (std::size_t k = i + 1; k < texts.size(); ++k) {
      if (texts[k].angle != 0) continue;
      const Box b = box_of(texts[k]);
      const bool apart = a.right <= b.left || b.right <= a.left || a.bottom <= b.top || b.bottom <= a.top;
      EXPECT_TRUE(apart) << "'" << texts[i].text << "' and '" << texts[k].text << "'";
    }
  }
  int depth = 0;
  for (const Item& item : figure.items) {
    depth += std::holds_alternative<GroupBegin>(item);
    depth -= std::holds_alternative<GroupEnd>(item);
    EXPECT_GE(depth, 0);
  }
  EXPECT_EQ(depth, 0);
}

}  // namespace memwall
