// The commands that a page of the documentation shows. For tests.
//
// In a fenced block without a language: every line that begins with one of the programs, up to its comment (" #");
// lines below it that begin with a blank are what it prints. In the text: what stands in backquotes and begins with a
// program and an argument.
#pragma once

#include <string>
#include <vector>

namespace memwall {

struct DocCommand {
  int line = 0;      // of the page, from 1
  std::string text;  // of one program, with its arguments
  std::string comment;
  bool fenced = false;
  std::string output;  // that the page shows: its lines, "" = none

  std::vector<std::string> words() const;  // without quotes
};

std::vector<DocCommand> doc_commands(const std::string& page);

// `text` with every run of blanks and ends of lines as one blank, none at the ends.
std::string with_single_blanks(const std::string& text);

}  // namespace memwall
