// Are policies found by name, their settings checked, and their combinations ordered or refused?
#include "sim/policy/registry.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "sim/error.h"
#include "tests/support/gpt_trace.h"
#include "tests/support/test_machine.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

bool policies_named(const std::string& name) { return policies().contains(name); }

std::string message_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

// What every policy declares must hold of itself.
TEST(Registry, EveryDefaultIsValidUnderItsOwnType) {
  std::size_t parameters = 0;
  for (const auto& [name, info] : policies()) {
    for (const ParameterInfo& p : info.parameters) {
      ++parameters;
      EXPECT_FALSE(p.sentence.empty()) << name << " " << p.name;
      if (p.required()) continue;
      EXPECT_EQ(message_of([&] { parse_parameter(name, p, p.default_value); }), "");
      EXPECT_EQ(parse_parameter(name, p, p.default_value).set, p.unset.empty());
    }
  }
  EXPECT_GT(parameters, 30u);
}

TEST(Registry, EveryPolicyRefusesWhatItsTypesExclude) {
  for (const auto& [name, info] : policies())
    for (const ParameterInfo& p : info.parameters) {
      EXPECT_NE(message_of([&] { parse_parameter(name, p, ""); }), "") << name << " " << p.name;
      if (p.type == ParameterType::program) continue;  // any name may be one
      const bool open =
          p.type == ParameterType::tier || p.type == ParameterType::tiers || p.type == ParameterType::patterns;
      EXPECT_NE(message_of([&] { parse_parameter(name, p, open ? "a++b" : "3 parsec"); }), "") << name << " " << p.name;
    }
}

TEST(Registry, APolicyMakesWhatItsKindSays) {
  for (const auto& [name, info] : policies()) {
    EXPECT_EQ(info.kind == PolicyKind::pager, info.make_pager != nullptr) << name;
    EXPECT_NE(info.make_pager == nullptr, info.make_rewriter == nullptr) << name;
    EXPECT_EQ(policy_of(info.kind).kind, info.kind);
  }
  EXPECT_EQ(policies().at("zero").ranks, RankRule::each_meeting);
  EXPECT_TRUE(policies().at("offload").may_repeat);
}

TEST(ParsePolicy, AnUnknownNameSuggestsTheNearest) {
  EXPECT_NE(message_of([] { parse_policy("chekpoint:mode=full"); }).find("Did you mean 'checkpoint'"),
            std::string::npos);
  EXPECT_NE(message_of([] { parse_policy("checkpoint:mode"); }).find("expected key=value"), std::string::npos);
}

TEST(ApplyRewriters, APagerIsNotARewriter) {
  const Machine machine = test_machine();
  const auto pricer = test_pricer(machine);
  EXPECT_NE(message_of([&] { apply_rewriters(gpt_step({}), {parse_policy("lru")}, machine, *pricer); }).find("--pager"),
            std::string::npos);
}

TEST(ApplyRewriters, APolicyTwiceIsSaidSo) {
  const Machine machine = test_machine();
  const auto pricer = test_pricer(machine);
  const std::vector<PolicySpec> twice = {parse_policy("checkpoint:mode=full"), parse_policy("checkpoint:mode=sqrt")};
  EXPECT_NE(message_of([&] { apply_rewriters(gpt_step({}), twice, machine, *pricer); }).find("is given twice"),
            std::string::npos);
}

TEST(ApplyRewriters, TwoOfOneKindHaveNoMeaning) {
  const Machine machine = test_machine();
  const auto pricer = test_pricer(machine);
  const std::vector<PolicySpec> twice = {parse_policy("chen"), parse_policy("mincut")};
  EXPECT_NE(message_of([&] { apply_rewriters(gpt_step({}), twice, machine, *pricer); }).find("no defined meaning"),
            std::string::npos);
}

// What re-runs ops goes before what moves storages, behind sharding; the optimizer's offload decides for the others.
TEST(ApplyRewriters, MemoryPlansComeBehindShardingReRunsFirst) {
  const Machine machine = test_machine();
  const auto pricer = test_pricer(machine);
  GptShape shape;
  shape.layers = 4;
  const auto notes_of = [&](const std::vector<std::string>& policies) {
    std::vector<PolicySpec> specs;
    for (const std::string& policy : policies) specs.push_back(parse_policy(policy));
    std::string order;
    for (const std::string& note : apply_rewriters(gpt_step(shape), specs, machine, *pricer).notes) {
      const std::string name = note.substr(0, note.find(':'));
      if (policies_named(name) && !order.ends_with(name)) order += " " + name;
    }
    return order;
  };
  const std::string offload = "offload:what=activations,to=host,min_bytes=0";
  EXPECT_EQ(notes_of({offload, "checkpoint:every=2", "zero:stage=3,ranks=2"}), " zero checkpoint offload");
  EXPECT_EQ(policies().at("checkpoint").kind, PolicyKind::memory_plan);
  EXPECT_EQ(policies().at("offload").kind, PolicyKind::memory_plan);
  const auto precedence = [](const std::string& text) {
    const PolicySpec spec = parse_policy(text);
    return spec.info->make_rewriter(spec.arguments)->precedence();
  };
  std::vector<int> order = {precedence("checkpoint:mode=full")};
  for (const char* what : {"optimizer", "gradients", "parameters", "activations"})
    order.push_back(precedence("offload:to=host,what=" + std::string(what)));
  EXPECT_TRUE(std::ranges::is_sorted(order));
  EXPECT_EQ(std::ranges::adjacent_find(order), order.end());
}

// The optimizer's offload comes last and makes no plan: the plan is of the policy that makes one, behind all others.
TEST(PlanRewriters, TheLastThatMakesAPlanDecidesBehindAllOthers) {
  const Machine machine = test_machine();
  const auto pricer = test_pricer(machine);
  const Trace step = gpt_step({.layers = 4, .hidden = 64, .sequence = 64, .batch = 4});
  const auto specs_of = [](const std::vector<std::string>& texts) {
    std::vector<PolicySpec> specs;
    for (const std::string& text : texts) specs.push_back(parse_policy(text));
    return specs;
  };
  const auto names = [](const PlannedStep& planned) {
    std::vector<std::string> list;
    for (const AppliedPolicy& each : planned.policies) list.push_back(each.policy);
    return list;
  };
  const std::string offload = "offload:what=optimizer,to=host", checkpoint = "checkpoint:mode=full";
  const PlannedStep all =
      plan_rewriters(step, specs_of({"zero:stage=3,ranks=2", offload, checkpoint}), machine, *pricer);
  EXPECT_EQ(names(all), (std::vector<std::string>{"zero", "offload", "checkpoint"}));
  EXPECT_EQ(all.made_by, "checkpoint:mode=full behind zero:stage=3,ranks=2, offload:what=optimizer,to=host");
  EXPECT_FALSE(all.plan.reruns.empty());
  const Trace others = apply_rewriters(step, specs_of({"zero:stage=3,ranks=2", offload}), machine, *pricer);
  EXPECT_EQ(all.trace.ops.size(), others.ops.size()) << "the trace is the one behind all others";
  EXPECT_NE(all.trace.ops.size(), step.ops.size());
  const PlannedStep none = plan_rewriters(step, specs_of({offload}), machine, *pricer);
  EXPECT_EQ(none.made_by, "no plan behind offload:what=optimizer,to=host");
  EXPECT_EQ(names(none), std::vector<std::string>{"offload"});
  EXPECT_EQ(none.plan, MemoryPlan{});
}

TEST(ApplyRewriters, ATraceTooPoorIsRefusedWithWhatIsMissing) {
  const Machine machine = test_machine();
  const auto pricer = test_pricer(machine);
  Trace poor = gpt_step({});
  poor.knowledge.dataflow = false;
  const std::string message =
      message_of([&] { apply_rewriters(poor, {parse_policy("checkpoint:mode=full")}, machine, *pricer); });
  EXPECT_NE(message.find("needs dataflow"), std::string::npos) << message;
}

TEST(ApplyRewriters, TheOrderOfFlagsDecidesNothing) {
  const Machine machine = test_machine();
  const auto pricer = test_pricer(machine);
  GptShape shape;
  shape.layers = 4;
  const Trace trace = gpt_step(shape);
  const PolicySpec checkpoint = parse_policy("checkpoint:mode=full");
  const PolicySpec offload = parse_policy("offload:what=activations,to=host,min_bytes=0");
  const Trace a = apply_rewriters(trace, {checkpoint, offload}, machine, *pricer);
  const Trace b = apply_rewriters(trace, {offload, checkpoint}, machine, *pricer);
  ASSERT_EQ(a.ops.size(), b.ops.size());
  for (std::size_t i = 0; i < a.ops.size(); ++i) EXPECT_EQ(a.ops[i].kind, b.ops[i].kind);
}

TEST(ApplyRewriters, ArgumentsMayNeedMoreThanThePolicyDeclares) {
  const Machine machine = test_machine();
  const auto pricer = test_pricer(machine);
  Trace poor = gpt_step({});
  poor.knowledge.dataflow = poor.knowledge.modules = false;
  const auto refusal = [&](const char* policy) {
    return message_of([&] { apply_rewriters(poor, {parse_policy(policy)}, machine, *pricer); });
  };
  EXPECT_NE(refusal("checkpoint:modules=layers.*").find("needs dataflow, modules,"), std::string::npos);
  EXPECT_NE(refusal("checkpoint").find("needs dataflow,"), std::string::npos);
}

TEST(NearestName, FarNamesAreNotSuggested) {
  EXPECT_EQ(nearest_name("ofload", {"offload", "zero"}), "offload");
  EXPECT_EQ(nearest_name("off", {"offload", "zero"}), "offload");
  EXPECT_EQ(nearest_name("xyzzy", {"offload", "zero"}), "");
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
