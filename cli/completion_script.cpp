#include "cli/completion_script.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <string_view>
#include <vector>

#include "cli/option_values.h"
#include "sim/error.h"

namespace memwall {
namespace {

using Words = std::vector<std::string>;

struct CompletedOption {
  Words names;       // "-o", "--output"
  std::string what;  // in a few words
  bool takes_value = false;
  OptionValues values;
};

struct CompletedVerb {
  std::string path;  // "machines show"; "" = the program
  std::string what;
  Words verbs;
  std::vector<CompletedOption> options;
  OptionValues positional;  // of all of them together
};

// The beginning of a description, as far as a list of offers has room for it.
std::string in_short(std::string text) {
  constexpr std::size_t kLongest = 70;
  for (const char* end : {". ", "; ", ": ", " ("}) text = text.substr(0, text.find(end));
  if (text.size() <= kLongest) return text;
  return text.substr(0, text.rfind(' ', kLongest)) + " ...";
}

bool takes_files(ValueKind kind) {
  return kind == ValueKind::input || kind == ValueKind::machine || kind == ValueKind::output_file;
}

void add_option(const CLI::App& app, const CLI::Option& option, CompletedVerb& verb) {
  const OptionValues values = values_of(app, option);
  if (!option.nonpositional()) {
    if (verb.positional.kind == ValueKind::other) verb.positional.kind = values.kind;
    verb.positional.words.insert(verb.positional.words.end(), values.words.begin(), values.words.end());
    return;
  }
  CompletedOption completed{.names = {},
                            .what = in_short(option.get_description()),
                            .takes_value = option.get_items_expected_max() > 0,
                            .values = values};
  for (const std::string& name : option.get_snames()) completed.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) completed.names.push_back("--" + name);
  verb.options.push_back(std::move(completed));
}

// `app` and its verbs, each before those below it.
void collect(const CLI::App& app, const std::string& path, std::vector<CompletedVerb>& verbs) {
  CompletedVerb verb{
      .path = path, .what = in_short(app.get_description()), .verbs = {}, .options = {}, .positional = {}};
  for (const CLI::Option* option : app.get_options()) add_option(app, *option, verb);
  const auto below = app.get_subcommands([](const CLI::App*) { return true; });
  for (const CLI::App* sub : below) verb.verbs.push_back(sub->get_name());
  verbs.push_back(std::move(verb));
  for (const CLI::App* sub : below) collect(*sub, path + (path.empty() ? "" : " ") + sub->get_name(), verbs);
}

std::vector<CompletedVerb> completed_verbs(const CLI::App& program) {
  std::vector<CompletedVerb> verbs;
  collect(program, "", verbs);
  // Of all verbs, whatever the place.
  const auto& options = verbs.front().options;
  const auto color = std::find_if(options.begin(), options.end(),
                                  [](const CompletedOption& o) { return o.names.back() == "--color"; });
  if (color != options.end()) {
    const CompletedOption everywhere = *color;
    for (std::size_t i = 1; i < verbs.size(); ++i) verbs[i].options.push_back(everywhere);
  }
  for (CompletedVerb& verb : verbs)
    if (verb.path == "help" || verb.path == "manual") verb.positional = {ValueKind::word, verbs.front().verbs};
  return verbs;
}

std::string joined(const Words& words, const char* between = " ") {
  return fmt::format("{}", fmt::join(words, between));
}

// "machines:show" for each verb of a verb, and ":run" for each verb.
Words steps_to_verbs(const std::vector<CompletedVerb>& verbs) {
  Words steps;
  for (const CompletedVerb& verb : verbs)
    for (const std::string& below : verb.verbs) steps.push_back(verb.path + ":" + below);
  return steps;
}

// --- bash

std::string bash_offers(const OptionValues& values) {
  const char* files = values.kind == ValueKind::folder ? "d" : takes_files(values.kind) ? "f" : "";
  return fmt::format("values='{}' files='{}'", joined(values.words), files);
}

std::string bash_case(const CompletedVerb& verb) {
  Words flags;
  std::string after;
  for (const CompletedOption& option : verb.options) {
    flags.insert(flags.end(), option.names.begin(), option.names.end());
    if (option.takes_value)
      after += fmt::format("        {}) flags='' {} ;;\n", joined(option.names, " | "), bash_offers(option.values));
  }
  OptionValues offered = verb.positional;
  offered.words.insert(offered.words.end(), verb.verbs.begin(), verb.verbs.end());
  return fmt::format("    '{}')\n      flags='{}' {}\n      case \"$previous\" in\n{}      esac ;;\n", verb.path,
                     joined(flags), bash_offers(offered), after);
}

std::string bash_script(const std::vector<CompletedVerb>& verbs) {
  std::string cases, steps;
  for (const CompletedVerb& verb : verbs) cases += bash_case(verb);
  for (const std::string& step : steps_to_verbs(verbs)) steps += (steps.empty() ? "'" : " | '") + step + "'";
  return fmt::format(R"(# Completion of memwall for bash, as `memwall completion bash` prints it.
_memwall() {{
  local cur="${{COMP_WORDS[COMP_CWORD]}}" previous="${{COMP_WORDS[COMP_CWORD - 1]}}" verb='' word='' i=0
  local flags='' values='' files=''
  # "--format=j" is three words.
  if [[ $cur == = ]]; then
    cur=''
  elif [[ $previous == = ]]; then
    previous="${{COMP_WORDS[COMP_CWORD - 2]}}"
  fi
  for ((i = 1; i < COMP_CWORD; i++)); do
    word="${{COMP_WORDS[i]}}"
    case "$verb:$word" in
      {}) verb="$verb${{verb:+ }}$word" ;;
    esac
  done
  case "$verb" in
{}  esac
  if [[ $cur == -* ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$flags" -- "$cur")
    return
  fi
  mapfile -t COMPREPLY < <(
    compgen -W "$values" -- "$cur"
    case "$files" in
      f) compgen -f -- "$cur" ;;
      d) compgen -d -- "$cur" ;;
    esac
  )
  if [[ -n $files ]]; then compopt -o filenames 2>/dev/null; fi
}}
complete -F _memwall memwall
)",
                     steps, cases);
}

// --- zsh

std::string replaced(std::string text, std::string_view what, std::string_view by) {
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += by.size())
    text.replace(at, what.size(), by);
  return text;
}

// Within single quotes.
std::string quoted(const std::string& text) { return "'" + replaced(text, "'", R"('\'')") + "'"; }

// Of a specification for _arguments: what follows the message.
std::string zsh_action(const OptionValues& values) {
  if (values.kind == ValueKind::folder) return "_files -/";
  if (!takes_files(values.kind)) return values.words.empty() ? " " : "(" + joined(values.words) + ")";
  return values.words.empty() ? "_files" : "{_memwall_names_or_files " + joined(values.words) + "}";
}

std::string zsh_arguments(const CompletedVerb& verb, const std::string& indent) {
  std::string text = "_arguments";
  for (const CompletedOption& option : verb.options)
    for (const std::string& name : option.names) {
      const bool is_long = name.starts_with("--");
      std::string what = replaced(replaced(option.what, "[", "\\["), "]", "\\]");
      text += " \\\n" + indent +
              quoted(fmt::format("*{}{}[{}]{}", name, option.takes_value ? (is_long ? "=" : "+") : "", what,
                                 option.takes_value ? ":value:" + zsh_action(option.values) : ""));
    }
  OptionValues offered = verb.positional;
  offered.words.insert(offered.words.end(), verb.verbs.begin(), verb.verbs.end());
  return text + " \\\n" + indent + quoted("*:argument:" + zsh_action(offered));
}

std::string zsh_script(const std::vector<CompletedVerb>& verbs) {
  std::string cases, steps, described;
  for (const CompletedVerb& verb : verbs) {
    if (verb.path.empty()) continue;
    cases += fmt::format("    {})\n      {} && ret=0 ;;\n", quoted(verb.path), zsh_arguments(verb, "        "));
    if (verb.path.find(' ') == std::string::npos)
      described += "    " + quoted(verb.path + ":" + verb.what) + "\n";
    else
      steps += (steps.empty() ? "" : " | ") + quoted(verb.path);
  }
  CompletedVerb program = verbs.front();
  program.verbs.clear();
  std::string begin = zsh_arguments(program, "    ");
  begin = begin.substr(0, begin.rfind(" \\\n"));  // without its positionals, which are verbs
  return fmt::format(R"zsh(#compdef memwall
# Completion of memwall for zsh, as `memwall completion zsh` prints it.
_memwall_names_or_files() {{
  _alternative "names:name:($*)" 'files:file:_files'
}}
_memwall() {{
  local curcontext="$curcontext" state='' verb='' ret=1
  local -a line verbs
  typeset -A opt_args
  {} -C \
    '1:verb:->verb' \
    '*::argument:->argument' && ret=0
  verbs=(
{}  )
  case $state in
    verb) _describe -t verbs verb verbs && ret=0 ;;
    argument) verb=$words[1] ;;
  esac
  case "$words[1] $words[2]" in
    {})
      if (( CURRENT > 2 )); then
        verb="$words[1] $words[2]"
        shift words
        (( CURRENT-- ))
      fi ;;
  esac
  case $verb in
{}  esac
  return ret
}}
if [ "$funcstack[1]" = _memwall ]; then _memwall "$@"; else compdef _memwall memwall; fi
)zsh",
                     begin, described, steps, cases);
}

// --- fish

std::string fish_offers(const OptionValues& values) {
  std::string text = values.kind == ValueKind::folder || takes_files(values.kind) ? " -F" : " -f";
  if (values.kind == ValueKind::folder) text = " -f -a '(__fish_complete_directories)'";
  if (!values.words.empty()) text += " -a " + quoted(joined(values.words));
  return text;
}

std::string fish_verb(const CompletedVerb& verb) {
  const std::string at = fmt::format("complete -c memwall -n '__memwall_verb \"{}\"'", verb.path);
  std::string text;
  for (const CompletedOption& option : verb.options) {
    text += at;
    for (const std::string& name : option.names)
      text += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
    if (option.takes_value) text += " -r" + fish_offers(option.values);
    text += " -d " + quoted(option.what) + "\n";
  }
  if (verb.positional.kind != ValueKind::other) text += at + fish_offers(verb.positional) + "\n";
  return text;
}

std::string fish_script(const std::vector<CompletedVerb>& verbs) {
  std::string text, steps;
  for (const std::string& step : steps_to_verbs(verbs)) steps += " " + quoted(step);
  for (const CompletedVerb& verb : verbs) {
    const std::size_t last = verb.path.rfind(' ');
    const std::string above = last == std::string::npos ? "" : verb.path.substr(0, last);
    const std::string name = last == std::string::npos ? verb.path : verb.path.substr(last + 1);
    if (!name.empty())
      text +=
          fmt::format("complete -c memwall -n '__memwall_verb \"{}\"' -a {} -d {}\n", above, name, quoted(verb.what));
    text += fish_verb(verb);
  }
  return fmt::format(R"(# Completion of memwall for fish, as `memwall completion fish` prints it.
function __memwall_verb --description 'Is this the verb of the command line?'
    set -l verb
    set -l words (commandline -opc)
    for word in $words[2..-1]
        switch "$verb:$word"
            case{}
                set verb (string trim "$verb $word")
        end
    end
    test "$verb" = "$argv"
end
complete -c memwall -f
{})",
                     steps, text);
}

}  // namespace

std::string completion_script(const CLI::App& program, const std::string& shell) {
  if (shell == "bash") return bash_script(completed_verbs(program));
  if (shell == "zsh") return zsh_script(completed_verbs(program));
  if (shell == "fish") return fish_script(completed_verbs(program));
  throw UsageError(fmt::format("there is no completion for \"{}\"; expected bash, zsh or fish.{}", shell,
                               did_you_mean(shell, {"bash", "zsh", "fish"})));
}

}  // namespace memwall
