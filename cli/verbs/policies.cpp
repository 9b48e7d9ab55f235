// memwall policies: which there are, and what each can be told.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <memory>

#include "cli/print/table.h"
#include "cli/verbs/verbs.h"
#include "sim/error.h"
#include "sim/policy/registry.h"

namespace memwall {
namespace {

struct Options {
  std::string format = "table", policy;
  CLI::App* show = nullptr;
};

const char* flag_of(const PolicyInfo& info) { return info.make_rewriter ? "--policy" : "--pager"; }

Table policy_list() {
  Table t{.name = "policies",
          .title = "",
          .columns = {"name", "flag", "sentence", "parameters"},
          .headings = {"name", "given with", "what it does", "parameters"},
          .rows = {},
          .wrap = true};
  for (const auto& [name, info] : policies()) {
    std::string parameters;
    for (const ParameterInfo& p : info.parameters) parameters += (parameters.empty() ? "" : " ") + p.name;
    t.rows.push_back({cell(name), cell(flag_of(info)), cell(info.sentence), cell(parameters)});
  }
  return t;
}

Table policy_table(const std::string& name) {
  const auto found = policies().find(name);
  if (found == policies().end()) parse_policy(name);  // throws, with the nearest name
  const PolicyInfo& info = found->second;
  Table t{.name = "parameters",
          .title = fmt::format("{} ({}): {}", name, flag_of(info), info.sentence),
          .columns = {"parameter", "default", "sentence"},
          .headings = {"parameter", "default", "meaning"},
          .rows = {},
          .wrap = true};
  for (const ParameterInfo& p : info.parameters)
    t.rows.push_back({cell(p.name),
                      {p.default_value.empty() ? "(required)" : p.default_value, p.default_value, false},
                      cell(p.sentence)});
  return t;
}

}  // namespace

Verb add_policies(CLI::App& parent) {
  auto o = std::make_shared<Options>();
  CLI::App* app = parent.add_subcommand("policies", "List the policies, or show one with its parameters");
  app->add_option("--format", o->format, "table, json, csv or md")->capture_default_str();
  app->footer(
      "A policy given with --policy rewrites the step before it is simulated; any number of them compose, in a\n"
      "fixed order whatever the order of flags. One given with --pager decides while the step runs; at most one.\n\n"
      "Examples:\n"
      "  memwall policies\n"
      "  memwall policies show offload\n"
      "  memwall run step.mwt --policy checkpoint:mode=full --policy offload:what=optimizer,to=host");
  o->show = app->add_subcommand("show", "The parameters of a policy, with their defaults");
  o->show->add_option("policy", o->policy, "A policy's name")->required();
  o->show->add_option("--format", o->format, "table, json, csv or md")->capture_default_str();
  return {app, [o] {
            const Format format = parse_format(o->format);
            print(to_text(o->show->parsed() ? policy_table(o->policy) : policy_list(), format));
            return 0;
          }};
}

}  // namespace memwall
