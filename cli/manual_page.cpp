#include "cli/manual_page.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cctype>
#include <sstream>

#include "sim/error.h"

namespace memwall {
namespace {

// As roff prints it letter by letter.
std::string roff(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\')
      out += "\\e";
    else if (c == '-')
      out += "\\-";
    else if (c == '\'')
      out += "\\(aq";
    else if (c == '`')
      out += "\\(ga";
    else if (c == '^')
      out += "\\(ha";
    else if (c == '~')
      out += "\\(ti";
    else
      out += c;
  }
  return out;
}

// A line that begins with a full stop would be a command.
std::string roff_line(const std::string& text) {
  const std::string line = roff(text);
  return line.starts_with('.') ? "\\&" + line : line;
}

std::string upper(std::string text) {
  for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return text;
}

std::string lower_first(std::string text) {
  if (!text.empty()) text[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(text[0])));
  return text;
}

// Of "TEXT:POSITIVE=2 REQUIRED ..." what a reader needs: "TEXT".
std::string value_name(const CLI::Option& option) {
  std::string name = option.get_type_name();
  return name.substr(0, name.find(':'));
}

std::string facts_of(const CLI::Option& option) {
  std::string facts;
  const std::string type = option.get_type_name();
  if (const std::size_t colon = type.find(':'); colon != std::string::npos)
    facts += " (" + type.substr(colon + 1) + ")";
  if (option.get_required()) facts += " Required.";
  if (!option.get_default_str().empty()) facts += " Default: " + option.get_default_str() + ".";
  return facts;
}

std::string sentence(std::string text) {
  if (!text.empty() && std::string_view(".!?").find(text.back()) == std::string_view::npos) text += ".";
  return text;
}

void write_option(const CLI::Option& option, std::ostream& out) {
  out << ".TP\n";
  if (!option.nonpositional()) {
    out << "\\fI" << roff(option.get_name(true)) << "\\fR\n";
  } else {
    std::string names;
    for (const std::string& name : option.get_snames())
      names += (names.empty() ? "" : ", ") + ("\\fB" + roff("-" + name)) + "\\fR";
    for (const std::string& name : option.get_lnames())
      names += (names.empty() ? "" : ", ") + ("\\fB" + roff("--" + name)) + "\\fR";
    const std::string value = option.get_items_expected_max() > 0 ? value_name(option) : "";
    out << names << (value.empty() ? "" : " \\fI" + roff(value) + "\\fR") << "\n";
  }
  out << roff_line(sentence(option.get_description()) + facts_of(option)) << "\n";
}

enum class OptionKind { positional, named };

void write_options(const CLI::App& app, OptionKind kind, std::ostream& out) {
  for (const CLI::Option* option : app.get_options())
    if (option->nonpositional() == (kind == OptionKind::named)) write_option(*option, out);
}

bool has_positionals(const CLI::App& app) {
  const auto options = app.get_options();
  return std::any_of(options.begin(), options.end(), [](const CLI::Option* o) { return !o->nonpositional(); });
}

// Paragraphs, and lines that stand as they are: those that begin with a blank.
void write_footer(const CLI::App& app, std::ostream& out) {
  std::istringstream lines(app.get_footer());
  bool as_it_is = false;
  for (std::string line; std::getline(lines, line);) {
    const bool code = line.starts_with(' ');
    if (code != as_it_is) out << (code ? ".PP\n.nf\n" : ".fi\n");
    as_it_is = code;
    if (line.empty())
      out << ".PP\n";
    else
      out << roff_line(line) << "\n";
  }
  if (as_it_is) out << ".fi\n";
}

std::string synopsis_of(const CLI::App& app, const std::string& title) {
  std::string text = "\\fB" + roff(title) + "\\fR [\\fIOPTIONS\\fR]";
  for (const CLI::Option* option : app.get_options()) {
    if (option->nonpositional()) continue;
    const std::string name =
        "\\fI" + roff(option->get_name(true)) + "\\fR" + (option->get_items_expected_max() > 1 ? " ..." : "");
    text += option->get_required() ? " " + name : " [" + name + "]";
  }
  return text;
}

std::vector<const CLI::App*> verbs_below(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

void write_verb_below(const CLI::App& app, const std::string& title, std::ostream& out) {
  out << ".SH " << upper(roff(title)) << "\n"
      << synopsis_of(app, title) << "\n.PP\n"
      << roff_line(sentence(app.get_description())) << "\n";
  write_options(app, OptionKind::positional, out);
  write_options(app, OptionKind::named, out);
  if (!app.get_footer().empty()) {
    out << ".PP\n";
    write_footer(app, out);
  }
}

const CLI::App& verb_named(const CLI::App& program, const std::string& name) {
  std::vector<std::string> known = verbs_with_manual(program);
  for (const CLI::App* verb : verbs_below(program))
    if (verb->get_name() == name && name != "help") return *verb;
  if (name.empty()) throw UsageError("a verb is missing; expected one of " + listed(known) + ".");
  const std::string near = nearest_name(name, known);
  throw UsageError(fmt::format("the verb \"{}\" is unknown{}; expected one of {}.", name,
                               near.empty() ? "" : fmt::format(" (nearest: \"{}\")", near), listed(known)));
}

}  // namespace

std::vector<std::string> verbs_with_manual(const CLI::App& program) {
  std::vector<std::string> names;
  for (const CLI::App* verb : verbs_below(program))
    if (verb->get_name() != "help") names.push_back(verb->get_name());
  return names;
}

std::string manual_page(const CLI::App& program, const std::string& name) {
  const CLI::App& verb = verb_named(program, name);
  std::ostringstream out;
  out << ".\\\" Written by `memwall manual " << name << "`.\n"
      << ".TH MEMWALL\\-" << upper(name) << " 1 \"\" \"memwall " MEMWALL_VERSION "\" \"User Commands\"\n"
      << ".SH NAME\nmemwall\\-" << name << " \\- " << roff(lower_first(verb.get_description())) << "\n"
      << ".SH SYNOPSIS\n"
      << synopsis_of(verb, "memwall " + name) << "\n";
  for (const CLI::App* below : verbs_below(verb))
    out << ".br\n" << synopsis_of(*below, "memwall " + name + " " + below->get_name()) << "\n";
  out << ".SH DESCRIPTION\n" << roff_line(sentence(verb.get_description())) << "\n";
  if (!verb.get_footer().empty()) out << ".PP\n";
  write_footer(verb, out);
  if (has_positionals(verb)) {
    out << ".SH ARGUMENTS\n";
    write_options(verb, OptionKind::positional, out);
  }
  out << ".SH OPTIONS\n";
  write_options(verb, OptionKind::named, out);
  for (const CLI::App* below : verbs_below(verb))
    write_verb_below(*below, "memwall " + name + " " + below->get_name(), out);
  out << ".SH EXIT STATUS\n"
         "0 done, 1 internal error, 2 usage or settings, 3 does not fit, 4 outside tolerance, 6 unreadable input;\n"
         ".BR memwall (1)\nsays more.\n"
         ".SH SEE ALSO\n.BR memwall (1)\n";
  return out.str();
}

}  // namespace memwall
