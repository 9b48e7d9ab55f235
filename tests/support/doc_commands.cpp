#include "tests/support/doc_commands.h"

#include <algorithm>
#include <regex>
#include <sstream>
#include <utility>

namespace memwall {
namespace {

// Assignments before the program belong to no argument; "a && b" is two commands.
void add_commands_of_line(std::vector<DocCommand>& found, const std::string& line, int number) {
  const std::size_t hash = line.find(" #");
  const std::string comment = hash == line.npos ? "" : with_single_blanks(line.substr(hash + 2));
  std::string rest = line.substr(0, hash);
  while (!rest.empty()) {
    const std::size_t next = rest.find(" && ");
    found.push_back({.line = number,
                     .text = with_single_blanks(rest.substr(0, next)),
                     .comment = comment,
                     .fenced = true,
                     .output = ""});
    rest = next == rest.npos ? "" : rest.substr(next + 4);
  }
}

// A paragraph of text: spans in backquotes may go on in the next line.
void add_commands_of_text(std::vector<DocCommand>& found, const std::string& text, int first_line) {
  static const std::regex span("`(memwall(?:-viewer|-bench|-replay)?\\s+[-a-z][^`]*)`");
  for (std::sregex_iterator m(text.begin(), text.end(), span), end; m != end; ++m) {
    const auto lines = std::count(text.begin(), text.begin() + m->position(), '\n');
    found.push_back({.line = first_line + static_cast<int>(lines),
                     .text = with_single_blanks((*m)[1]),
                     .comment = "",
                     .fenced = false,
                     .output = ""});
  }
}

}  // namespace

std::string with_single_blanks(const std::string& text) {
  std::string out;
  for (const char c : text) {
    const bool blank = c == ' ' || c == '\n' || c == '\t' || c == '\r';
    if (!blank)
      out += c;
    else if (!out.empty() && out.back() != ' ')
      out += ' ';
  }
  if (!out.empty() && out.back() == ' ') out.pop_back();
  return out;
}

std::vector<std::string> DocCommand::words() const {
  std::vector<std::string> found;
  std::string word;
  char quote = 0;
  for (const char c : text + " ") {
    if (quote != 0 ? c == quote : c == '"' || c == '\'')
      quote = quote != 0 ? 0 : c;
    else if (c != ' ' || quote != 0)
      word += c;
    else if (!word.empty())
      found.push_back(std::exchange(word, ""));
  }
  return found;
}

std::vector<DocCommand> doc_commands(const std::string& page) {
  static const std::regex program("^([A-Z_0-9]+=\\S+ +)*memwall(-viewer|-bench|-replay)?( .*)?$");
  std::vector<DocCommand> found;
  std::istringstream lines(page);
  std::string line, text;
  bool fenced = false, of_a_shell = false, below_a_command = false;
  int number = 0, text_begin = 1;
  const auto end_text = [&] {
    add_commands_of_text(found, text, text_begin);
    text.clear();
  };
  while (std::getline(lines, line)) {
    ++number;
    if (line.starts_with("```")) {
      end_text();
      fenced = !fenced;
      of_a_shell = line == "```";
      below_a_command = false;
    } else if (!fenced) {
      if (line.empty()) end_text();
      if (text.empty()) text_begin = number;
      text += line + "\n";
    } else if (of_a_shell && std::regex_match(line, program)) {
      add_commands_of_line(found, line, number);
      below_a_command = true;
    } else if (below_a_command && line.starts_with(" ")) {
      found.back().output += line + "\n";
    } else if (!line.empty()) {
      below_a_command = false;
    }
  }
  end_text();
  return found;
}

}  // namespace memwall
