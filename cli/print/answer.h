// The table that stands first: what was asked, answered in two or three sentences.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "cli/print/table.h"

namespace memwall {

// Named "verdict"; sentences that are "" are left out.
inline Table answer_table(std::string title, const std::vector<std::string>& sentences) {
  Table t{
      .name = "verdict", .title = std::move(title), .columns = {"answer"}, .headings = {""}, .rows = {}, .prose = true};
  t.wrap = true;
  t.bullets = false;
  for (const std::string& sentence : sentences)
    if (!sentence.empty()) t.rows.push_back({cell(sentence)});
  return t;
}

}  // namespace memwall
