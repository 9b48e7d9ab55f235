// memwall policies: which there are, and what each can be told.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <memory>

#include "cli/print/format.h"
#include "cli/print/table.h"
#include "cli/verbs/verbs.h"
#include "sim/error.h"
#include "sim/policy/registry.h"

namespace memwall {
namespace {

struct PoliciesOptions {
  std::string format = "table", policy;
  CLI::App* show = nullptr;
};

const char* flag_of(const PolicyInfo& info) { return info.make_rewriter ? "--policy" : "--pager"; }

std::string needs_of(const PolicyInfo& info) { return listed(missing_knowledge(info.needs, {})); }

bool is_for_people(Format format) { return format == Format::table || format == Format::md; }

Table policy_list(Format format) {
  Table t{.name = "policies",
          .title = "",
          .columns = {"name", "flag", "sentence", "parameters"},
          .headings = {"name", "given with", "what it does", "parameters"},
          .rows = {},
          .wrap = true};
  if (!is_for_people(format)) t.columns.insert(t.columns.end(), {"kind", "needs", "ranks", "may_repeat"});
  for (const auto& [name, info] : policies()) {
    std::string parameters;
    for (const ParameterInfo& p : info.parameters) parameters += (parameters.empty() ? "" : " ") + p.name;
    std::vector<Cell> row = {cell(name), cell(flag_of(info)), cell(info.sentence), cell(parameters)};
    if (!is_for_people(format))
      row.insert(row.end(), {cell(std::string(to_string(info.kind))), cell(needs_of(info)),
                             cell(std::string(to_string(info.ranks))), cell(info.may_repeat ? "yes" : "no")});
    t.rows.push_back(std::move(row));
  }
  return t;
}

Cell limit_cell(const ParameterInfo& p, double limit) {
  const bool limited = p.range.low < p.range.high;
  return {"", limited ? plain_number(limit) : "null", true};
}

Table policy_table(const PolicyInfo& info, Format format) {
  const std::string needs = needs_of(info);
  Table t{.name = "parameters",
          .title = fmt::format("{} ({}): {}{}", info.name, flag_of(info), info.sentence,
                               needs.empty() ? "" : "; needs " + needs),
          .columns = {"parameter", "default", "values", "sentence"},
          .headings = {"parameter", "default", "values", "meaning"},
          .rows = {},
          .wrap = true};
  if (!is_for_people(format)) t.columns.insert(t.columns.end(), {"type", "required", "unset", "low", "high", "unit"});
  for (const ParameterInfo& p : info.parameters) {
    const std::string values = is_for_people(format) ? values_text(p) : listed(p.words);
    std::vector<Cell> row = {cell(p.name),
                             {p.required() ? "(required)" : p.default_value, p.default_value, false},
                             cell(values),
                             cell(p.sentence)};
    if (!is_for_people(format))
      row.insert(row.end(), {cell(std::string(to_string(p.type))), cell(p.required() ? "yes" : "no"), cell(p.unset),
                             limit_cell(p, p.range.low), limit_cell(p, p.range.high), cell(p.unit)});
    t.rows.push_back(std::move(row));
  }
  return t;
}

}  // namespace

Verb add_policies(CLI::App& parent) {
  auto o = std::make_shared<PoliciesOptions>();
  CLI::App* app = parent.add_subcommand("policies", "List the policies, or show one with its parameters");
  app->add_option("policy", o->policy, "A policy's name: as show");
  app->add_option("--format", o->format, "table, json, csv or md")->capture_default_str();
  app->footer(
      "A policy given with --policy rewrites the step before it is simulated; any number of them compose, in a\n"
      "fixed order whatever the order of flags. One given with --pager decides while the step runs; at most one.\n\n"
      "Examples:\n"
      "  memwall policies\n"
      "  memwall policies offload\n"
      "  memwall run step.mwt --policy checkpoint:mode=full --policy offload:what=optimizer,to=host");
  o->show = app->add_subcommand("show", "The parameters of a policy, with their defaults");
  o->show->add_option("policy", o->policy, "A policy's name")->required();
  o->show->add_option("--format", o->format, "table, json, csv or md")->capture_default_str();
  return {app, [o] {
            const Format format = parse_format(o->format);
            const bool one = !o->policy.empty();
            print(to_text(one ? policy_table(policy_named(o->policy), format) : policy_list(format), format));
            return 0;
          }};
}

}  // namespace memwall
