// memwall completion: what a shell needs to complete command lines of memwall.
#include <CLI/CLI.hpp>

#include <memory>
#include <ostream>

#include "cli/completion_script.h"
#include "cli/output_file.h"
#include "cli/verbs/verbs.h"

namespace memwall {
namespace {

struct CompletionOptions {
  std::string shell, output;
};

}  // namespace

Verb add_completion(CLI::App& parent) {
  auto o = std::make_shared<CompletionOptions>();
  CLI::App* app = parent.add_subcommand("completion", "Print what a shell needs to complete command lines of memwall");
  app->add_option("shell", o->shell, "bash, zsh or fish")->required();
  app->add_option("-o,--output", o->output, "Where to; default: stdout");
  app->footer(
      "An installation brings all three to where the shells look for them. Without one:\n"
      "  source <(memwall completion bash)                   # in ~/.bashrc\n"
      "  source <(memwall completion zsh)                    # in ~/.zshrc, after compinit\n"
      "  memwall completion fish > ~/.config/fish/completions/memwall.fish\n\n"
      "Names of machines are those that there are when the script is printed.");
  return {app, [o, &parent] {
            const std::string script = completion_script(parent, o->shell);
            write_output(o->output, [&](std::ostream& out) { out << script; });
            return 0;
          }};
}

}  // namespace memwall
