// memwall: the program. Chooses the verb, and turns what goes wrong into a
// sentence on stderr and an exit code.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <cstdio>
#include <memory>
#include <new>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "cli/large_arrays.h"
#include "cli/option_values.h"
#include "cli/print/style.h"
#include "cli/print/table.h"
#include "cli/verbs/verbs.h"
#include "sim/error.h"
#include "sim/files/temporary_name.h"
#include "sim/presentable.h"
#include "study/step_setting.h"

namespace memwall {

namespace {

enum ExitCode { kDone = 0, kInternal = 1, kUsage = 2, kDoesNotFit = 3, kUnreadable = 6 };

// Descriptions of options wrapped for a terminal: the library prints each in one line, however long.
class HelpFormatter : public CLI::Formatter {
  std::string make_option_desc(const CLI::Option* option) const override {
    return wrapped(Formatter::make_option_desc(option), terminal_width() - column_width_, "\n");
  }
  std::string make_subcommand(const CLI::App* sub) const override {
    std::stringstream line;
    const std::string what = wrapped(sub->get_description(), terminal_width() - column_width_, "\n");
    CLI::detail::format_help(line, sub->get_name(), what, column_width_);
    return line.str();
  }
};

// As it was typed, without folders in the program's name, quoted where a shell needs it.
std::string command_line_of(int argc, char** argv) {
  std::string line = "memwall";
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const bool plain = !word.empty() && word.find_first_of(" \t\n\"'$`\\|&;<>()*?[]{}!#~") == std::string::npos;
    line += " " + (plain ? word : "'" + word + "'");
  }
  return line;
}

// The verb and sub-verb that were given, "memwall machines show".
std::string title_of(const CLI::App& app) {
  std::string title = "memwall";
  for (const CLI::App* at = &app; !at->get_subcommands().empty();) {
    at = at->get_subcommands().front();
    title += " " + at->get_name();
  }
  return title;
}

const CLI::App& deepest(const CLI::App& app) {
  return app.get_subcommands().empty() ? app : deepest(*app.get_subcommands().front());
}

std::vector<std::string> flags_of(const CLI::App& app) {
  std::vector<std::string> flags;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) flags.push_back("--" + name);
    for (const std::string& name : option->get_snames()) flags.push_back("-" + name);
  }
  return flags;
}

std::vector<std::string> verbs_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(sub->get_name());
  return names;
}

// "shw" of `machines shw NAME`: what was taken for a name because it is none of the verbs, and resembles one. Else "".
std::string misspelled_verb(const CLI::App& app, const std::vector<std::string>& verbs) {
  for (const CLI::Option* option : app.get_options())
    if (!option->nonpositional() && !option->results().empty() &&
        !nearest_name(option->results().front(), verbs).empty())
      return option->results().front();
  return "";
}

// The step of a verb that has one, among what was taken for steps: of `run gpt2 --batch 4` the "4" was, too. "" where
// none was given.
std::string given_step(const CLI::App& app) {
  const CLI::Option* const steps = app.get_option_no_throw("step");
  if (steps == nullptr) return "";
  for (const std::string& word : steps->results())
    if (word.find_first_not_of("0123456789") != word.npos) return word;
  return "";
}

// "--batch 4" and "--batch=4" of a verb that has a step: settings of that are no options.
void refuse_setting(const CLI::App& app, const std::string& flag) {
  if (app.get_option_no_throw("step") == nullptr) return;
  const std::size_t begin = flag.find_first_not_of('-'), equals = flag.find('=');
  if (begin == flag.npos) return;
  const std::string setting = step_setting(flag.substr(begin, equals - begin));
  if (setting.empty()) return;
  throw UsageError(
      fmt::format("there is no flag \"{}\": {}", flag.substr(0, equals),
                  where_to_set(setting, equals == flag.npos ? "" : flag.substr(equals + 1), given_step(app))));
}

// A word that the command line has no place for.
[[noreturn]] void refuse_word(const CLI::App& app, const std::string& extra) {
  if (extra.starts_with("-")) refuse_setting(app, extra);
  const bool flag = extra.starts_with("-");
  const std::vector<std::string> known = flag ? flags_of(app) : verbs_of(app);
  const std::string verb = flag ? "" : misspelled_verb(app, known);
  const std::string& word = verb.empty() ? extra : verb;
  const std::string near = nearest_name(word, known);
  throw UsageError(fmt::format("{} \"{}\" is unknown{}{}",
                               flag            ? "the flag"
                               : known.empty() ? "the argument"
                                               : "the verb",
                               word, near.empty() ? "" : fmt::format(" (nearest: \"{}\")", near),
                               known.empty() ? "." : fmt::format("; expected one of {}.", listed(known))));
}

void allow_extras(CLI::App& app) {
  app.allow_extras();
  for (CLI::App* sub : app.get_subcommands([](CLI::App*) { return true; })) allow_extras(*sub);
}

int act(CLI::App& app, const std::vector<Verb>& verbs) {
  const std::vector<std::string> extras = app.remaining(true);
  if (!extras.empty()) refuse_word(deepest(app), extras.front());
  require_one_standard_input(app);
  for (const Verb& verb : verbs)
    if (verb.app->parsed()) return verb.act();
  throw UsageError("a verb is missing; expected one of " + listed(verbs_of(app)) + ".");
}

// Headings ("Options:") in bold, sentences no wider than the terminal; what is indented is lists, which are laid out
// already, and commands, which stay whole.
std::string laid_out(const std::string& help) {
  std::istringstream lines(help);
  std::string text;
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with(' ')) line = wrapped(line, terminal_width(), "\n");
    text += (line.ends_with(':') && !line.starts_with(' ') ? styled(line, Style::heading) : line) + "\n";
  }
  return text;
}

// Parses. The help or the version where that was asked for, else "". Printing it may fail, which no handler of CLI11's
// exceptions could tell.
std::string asked_about(CLI::App& app, const std::vector<char*>& words) {
  try {
    app.parse(static_cast<int>(words.size()), words.data());
    return "";
  } catch (const CLI::CallForHelp&) {
    const std::vector<std::string> extras = app.remaining(true);
    if (app.get_subcommands().empty() && !extras.empty()) refuse_word(app, extras.front());  // no verb of ours
    return laid_out(app.help());  // of the verb, where one was given
  } catch (const CLI::CallForVersion& version) {
    return std::string(version.what()) + "\n";
  }
}

// The mistake of a command line that CLI11 refused. A misspelled flag or verb is told
// before what is then missing.
std::string mistake_of(const CLI::App& app, const CLI::ParseError& error) {
  const std::vector<std::string> extras = app.remaining(true);
  if (!extras.empty()) {
    try {
      refuse_word(deepest(app), extras.front());
    } catch (const UsageError& better) {
      return better.what();
    }
  }
  std::string text = error.what();
  if (!text.empty() && text.back() != '.') text += '.';
  return text;
}

// One line, whatever names it holds.
int fail(const std::string& title, const std::string& sentence, int code) {
  print_failure(title, sentence);
  if (code == kUsage) print_error("Try `{} --help`.\n", title);
  return code;
}

// What `memwall --help` says besides the verbs.
void describe(CLI::App& app) {
  app.description(
      "memwall replays a training step on a machine under policies: does it fit, how long is a step,\n"
      "where does the time go, and what changes with checkpointing, offload, ZeRO or another machine.");
  app.name("memwall");
  app.formatter(std::make_shared<HelpFormatter>());  // verbs inherit it
  app.set_version_flag("--version", "memwall " MEMWALL_VERSION);
  app.add_option("--color", "Bold and red on a terminal: auto, always or never; may stand behind the verb")
      ->type_name("WHEN")
      ->default_str("auto");
  app.require_subcommand(0, 1);  // behind a verb a word that is another's name is an argument: `memwall manual run`
  app.footer(
      "A first look:\n"
      "  memwall import profile.json.gz -o step.mwt      # a capture of torch.profiler becomes a trace\n"
      "  memwall inspect step.mwt                        # what it knows, what can be asked of it\n"
      "  memwall run step.mwt -o base.h5                 # replay it as it was\n"
      "  memwall run step.mwt --policy checkpoint:mode=full -o run.h5\n"
      "  memwall compare base.h5 run.h5                  # what changed\n"
      "  memwall view base.h5 run.h5                     # look at both in a window\n\n"
      "Sizes are printed in decimal units (1 GB = 10^9 bytes); options take these and binary ones (80GB, 80GiB).\n"
      "Data goes to stdout, the rest to stderr. Exit codes: 0 done, 1 internal error, 2 usage or settings,\n"
      "3 does not fit (the full result is still printed), 4 validation outside tolerance, 5 sweep with failed points,\n"
      "6 unreadable input.");
}

std::vector<Verb> add_verbs(CLI::App& app, const std::string& command_line) {
  std::vector<Verb> verbs{add_import(app),
                          add_inspect(app),
                          add_run(app, command_line),
                          add_compare(app),
                          add_compare_policies(app),
                          add_export(app),
                          add_render(app),
                          add_view(app),
                          add_memory(app),
                          add_machines(app),
                          add_policies(app),
                          add_calibrate(app),
                          add_schedule(app),
                          add_validate(app),
                          add_forecast(app),
                          add_watch(app),
                          add_generate(app),
                          add_roofline(app),
                          add_emit(app),
                          add_plan(app),
                          add_sweep(app),
                          add_fit(app),
                          add_explain(app),
                          add_completion(app),
                          add_manual(app)};
  app.add_subcommand("help", "Print this, or what a verb does: memwall help run");
  return verbs;
}

int parse_and_act(CLI::App& app, const std::vector<char*>& words, const std::string& command_line) {
  describe(app);
  const std::vector<Verb> verbs = add_verbs(app, command_line);
  allow_extras(app);
  take_standard_input(app);
  try {
    const std::string wanted = asked_about(app, words);
    if (wanted.empty()) return act(app, verbs);
    print(wanted);
    return kDone;
  } catch (const CLI::ParseError& error) {
    return fail(title_of(app), mistake_of(app, error), kUsage);
  } catch (const UsageError& error) {
    return fail(title_of(app), error.what(), kUsage);
  } catch (const InfeasibleError& error) {
    return fail(title_of(app), error.what(), kDoesNotFit);
  } catch (const InputError& error) {
    return fail(title_of(app), error.what(), kUnreadable);
  } catch (const std::bad_alloc&) {
    return fail(title_of(app), "memory of this computer is exhausted.", kInternal);
  } catch (const std::exception& error) {
    return fail(title_of(app), error.what(), kInternal);
  }
}

// --color stands anywhere, and holds for errors, too: it is taken before the rest is read.
void take_color(std::vector<char*>& words) {
  constexpr std::string_view kName = "--color";
  for (auto at = words.begin() + std::min<std::ptrdiff_t>(1, std::ssize(words)); at != words.end(); ++at) {
    const std::string_view word = *at;
    if (word == "--") return;
    if (word != kName && !word.starts_with("--color=")) continue;
    const bool behind = word == kName;
    if (behind && at + 1 == words.end())
      throw UsageError("--color: a value is missing; expected auto, always or never.");
    choose_colors(parse_color_choice(behind ? *(at + 1) : *at + kName.size() + 1));
    at = words.erase(at, at + (behind ? 2 : 1)) - 1;
  }
}

// "memwall help run" asks what "memwall run --help" does.
void ask_for_help(std::vector<char*>& words) {
  static char help[] = "--help";
  if (words.size() < 2 || std::string_view(words[1]) != "help") return;
  words.erase(words.begin() + 1);
  words.push_back(help);
}

int run_program(int argc, char** argv) {
  try {
    std::vector<char*> words(argv, argv + argc);
    take_color(words);
    ask_for_help(words);
    CLI::App app;
    return parse_and_act(app, words, command_line_of(argc, argv));
  } catch (const UsageError& error) {
    return fail("memwall", error.what(), kUsage);
  } catch (const std::bad_alloc&) {  // before there were verbs
    std::fputs("memwall: memory of this computer is exhausted.\n", stderr);
    return kInternal;
  }
}

}  // namespace
}  // namespace memwall

int main(int argc, char** argv) {
  memwall::keep_freed_memory();
  memwall::prepare_program();
  return memwall::run_program(argc, argv);
}
