#include "traces/emit/plan_choices.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

namespace memwall {
namespace {

bool recomputes(const std::string& policy) { return policy == "checkpoint" || policy == "selective"; }
bool is_known(const std::string& policy) {
  return recomputes(policy) || policy == "zero" || policy == "offload" || policy == "batch";
}

// "h.11" is child 11 of "h".
struct Child {
  std::string list;
  std::uint32_t number = 0;
};

std::optional<Child> child_of(const std::string& module) {
  const std::size_t dot = module.rfind('.');
  if (dot == module.npos || dot == 0) return std::nullopt;
  Child child{module.substr(0, dot)};
  const char* const end = module.data() + module.size();
  const auto [stop, error] = std::from_chars(module.data() + dot + 1, end, child.number);
  if (error != std::errc() || stop != end) return std::nullopt;
  return child;
}

// Units as numbers of children of one list.
struct NumberedUnits {
  std::string list;
  std::vector<std::vector<std::uint32_t>> units;

  bool single() const {
    return std::all_of(units.begin(), units.end(), [](const auto& unit) { return unit.size() == 1; });
  }
  // Each alone: the last of every `step`, from the first on.
  bool every(std::uint32_t step) const {
    for (std::size_t i = 0; i < units.size(); ++i)
      if (units[i].size() != 1 || units[i].front() != step * (i + 1) - 1) return false;
    return true;
  }
  // All children from 0 on, `size` in a row; the last unit may be shorter.
  bool in_groups(std::size_t size) const {
    std::uint32_t next = 0;
    for (std::size_t i = 0; i < units.size(); ++i) {
      if (units[i].size() > size || (units[i].size() < size && i + 1 < units.size())) return false;
      for (const std::uint32_t number : units[i])
        if (number != next++) return false;
    }
    return true;
  }
};

std::optional<NumberedUnits> numbered(const std::vector<ModuleRecompute>& recompute) {
  NumberedUnits all;
  for (const ModuleRecompute& part : recompute)
    for (const std::vector<std::string>& unit : part.units) {
      std::vector<std::uint32_t>& numbers = all.units.emplace_back();
      for (const std::string& module : unit) {
        const std::optional<Child> child = child_of(module);
        if (!child || (!all.list.empty() && child->list != all.list)) return std::nullopt;
        all.list = child->list;
        numbers.push_back(child->number);
      }
      if (numbers.empty()) return std::nullopt;
    }
  if (all.units.empty()) return std::nullopt;
  std::sort(all.units.begin(), all.units.end());
  return all;
}

// "checkpoint:every=2", with what makes it more than the default.
std::string name_of(const AppliedPolicy& policy) {
  std::string text;
  const auto add = [&](const std::string& part) { text += (text.empty() ? ":" : ",") + part; };
  if (const std::string mode = policy.word("mode"); !mode.empty() && mode != "auto") add("mode=" + mode);
  if (const std::int64_t every = policy.integer("every", 0); every > 0) add(fmt::format("every={}", every));
  for (const char* key : {"save", "modules", "ops", "what"}) {
    const std::vector<std::string> items = policy.list(key);
    if (items.empty() || items.front() == "none") continue;
    std::string joined;
    for (const std::string& item : items) joined += (joined.empty() ? "" : "+") + item;
    add(fmt::format("{}={}", key, joined));
  }
  if (const std::int64_t layers = policy.integer("layers", 0); layers > 0) add(fmt::format("layers={}", layers));
  if (const double share = policy.number("fraction", 1); share != 1) add(fmt::format("fraction={}", share));
  if (policy.flag("hides", false)) add("hides=1");
  if (policy.word("spread") == "even") add("spread=even");
  if (policy.word("last") == "keep") add("last=keep");
  if (const std::string tier = policy.word("to"); !tier.empty()) add("to=" + tier);
  return policy.policy + text;
}

bool is_given(const AppliedPolicy& policy, std::string_view patterns) {
  const std::vector<std::string> items = policy.list(patterns);
  return !items.empty() && items.front() != "none";
}

// Does it take all units that it finds, as torch.utils.checkpoint does?
bool takes_all(const AppliedPolicy& p) {
  return p.number("fraction", 1) == 1 && p.integer("layers", 0) == 0 && !p.flag("hides", false) &&
         p.word("last") != "keep";
}

class ChoiceReader {
 public:
  ChoiceReader(const PlanDocument& document, const std::string& gradient_dtype) : d_(document) {
    c_.compute_dtype = d_.step.compute_dtype;
    c_.gradient_dtype = gradient_dtype.empty() ? d_.step.gradient_dtype : gradient_dtype;
  }

  PlanChoices read() {
    read_batch();
    for (std::size_t i = 0; i < d_.policies.size(); ++i) take(d_.policies[i], i + 1 == d_.policies.size());
    if (decides() && !claimed_)
      refuse(d_.made_by.empty() ? "the plan's decisions" : d_.made_by,
             d_.policies.empty()
                 ? "the file does not name its policies, and its decisions alone do not say whether they "
                   "are of the whole model; write it again with `memwall run --plan-out`"
                 : "its decisions are of single storages and operators");
    return std::move(c_);
  }

 private:
  bool decides() const { return !d_.plan.storages.empty() || !d_.plan.reruns.empty(); }
  void refuse(std::string decision, std::string reason) {
    c_.beyond.push_back({std::move(decision), std::move(reason), true});
  }

  void read_batch() {
    if (d_.realization && d_.realization->forwards > 0) c_.batch.forwards = d_.realization->forwards;
    const double each = d_.step.samples / static_cast<double>(c_.batch.forwards);
    if (each >= 1 && each == std::floor(each)) c_.batch.samples = static_cast<std::int64_t>(each);
    const double tokens = d_.step.samples > 0 ? d_.step.tokens / d_.step.samples : 0;
    constexpr double kMostTokens = 1e15;
    if (tokens >= 1 && tokens <= kMostTokens && tokens == std::floor(tokens))
      c_.batch.tokens = static_cast<std::int64_t>(tokens);
  }

  void take(const AppliedPolicy& policy, bool is_last) {
    if (recomputes(policy.policy)) {
      c_.recompute = is_last && d_.realization ? named_choice(policy) : stated_choice(policy);
      claimed_ = claimed_ || is_last;
    } else if (policy.policy == "zero") {
      take_shard(policy);
    } else if (policy.policy == "offload") {
      take_offload(policy);
      claimed_ = claimed_ || is_last;
    } else if (policy.policy == "fusion") {
      c_.beyond.push_back({"fusion", "torch.compile stands for it; turn that on in the program that trains", false});
    } else if (!is_known(policy.policy)) {
      refuse(policy.policy, "it decides storage by storage, which no setting of a framework says");
      claimed_ = claimed_ || is_last;
    }
  }

  void take_shard(const AppliedPolicy& policy) {
    const std::int64_t stage = policy.integer("stage", -1);
    if (stage < 0 || stage > 3) return refuse("zero", "the file names no stage from 0 to 3");
    constexpr std::int64_t kMostBytes = std::int64_t{1} << 60;
    c_.shard = ShardChoice{static_cast<int>(stage),
                           std::clamp<std::int64_t>(policy.integer("ranks", 1), 1, 1 << 20),
                           std::clamp<std::int64_t>(policy.integer("bucket_bytes", 1), 1, kMostBytes),
                           std::clamp<std::int64_t>(policy.integer("reuse_distance", 0), 0, kMostBytes),
                           policy.flag("overlap", true),
                           policy.flag("prefetch", true)};
  }

  void take_offload(const AppliedPolicy& policy) {
    OffloadChoice choice{.name = name_of(policy),
                         .tier = policy.word("to"),
                         .pinned = policy.flag("pinned", true),
                         .beside_compute = policy.word("stream") != "compute",
                         .fraction = policy.number("fraction", 1),
                         .hides = policy.flag("hides", false),
                         .min_bytes = policy.integer("min_bytes", 0),
                         .on_cpu = policy.flag("cpu_adam", true),
                         .pipeline = policy.flag("pipeline", false),
                         .group = policy.integer("group", 0)};
    for (const std::string& what : policy.list("what")) {
      if (what == "activations") c_.activations = choice;
      if (what == "optimizer") c_.optimizer = choice;
      if (what == "gradients") c_.gradients = choice;
      if (what == "parameters") c_.parameters = choice;
    }
    if (policy.flag("inputs", false))
      c_.beyond.push_back({choice.name, "inputs=1: no framework sends the step's inputs away", false});
  }

  // From what the policy was asked alone: the file names modules of its own decisions only.
  RecomputeChoice stated_choice(const AppliedPolicy& p) const {
    RecomputeChoice choice{BlockRecompute::by_name, name_of(p), ""};
    choice.early_stop = p.flag("early_stop", true);
    choice.save_operators = p.list("save");
    choice.why = "the file does not list its modules, as another policy made the decisions";
    const std::string mode = p.word("mode");
    if (is_given(p, "modules") || is_given(p, "ops") || mode == "sqrt" || p.word("outputs") == "drop") return choice;
    const std::int64_t every = p.integer("every", 0), layers = p.integer("layers", 0);
    if (takes_all(p)) {
      choice.which = every > 1 ? BlockRecompute::groups : BlockRecompute::every_block;
      choice.number = every > 1 ? static_cast<std::uint32_t>(every) : 1;
    } else if (layers > 0 && every <= 1 && p.word("spread") != "even" && p.word("last") != "keep") {
      choice.which = BlockRecompute::first_blocks;
      choice.number = static_cast<std::uint32_t>(layers);
    }
    return choice;
  }

  // From the modules that the file lists; whether they are all of their list the policy says.
  RecomputeChoice named_choice(const AppliedPolicy& p) const {
    const PlanRealization& real = *d_.realization;
    RecomputeChoice choice{BlockRecompute::by_name, name_of(p), ""};
    choice.is_named = true;
    if (real.recompute.empty() && real.lazy_operators.empty() && real.unnamed.empty()) {
      choice.which = BlockRecompute::none;
      return choice;
    }
    for (const UnnamedDecisions& unnamed : real.unnamed)
      if (unnamed.what != "modules") choice.why = unnamed.reason.substr(0, unnamed.reason.find_last_not_of('.') + 1);
    if (!choice.why.empty()) {
      choice.is_named = false;
      return choice;
    }
    if (!real.lazy_operators.empty()) choice.why = "it runs single operators again";
    for (const ModuleRecompute& part : real.recompute)
      if (part.early_stop != real.recompute.front().early_stop ||
          part.save_operators != real.recompute.front().save_operators)
        choice.why = "its modules differ in early_stop, or in the operators that are kept";
    if (!choice.why.empty() || real.recompute.empty()) return choice;
    choice.early_stop = real.recompute.front().early_stop;
    choice.save_operators = real.recompute.front().save_operators;
    classify(p, numbered(real.recompute), choice);
    return choice;
  }

  static void classify(const AppliedPolicy& p, const std::optional<NumberedUnits>& found, RecomputeChoice& choice) {
    if (!found) {
      choice.why = "its modules are not the numbered children of one list";
      return;
    }
    choice.list = found->list;
    // A pattern that names all children of a list names blocks.
    const std::vector<std::string> patterns = p.list("modules");
    const bool is_of_blocks = !is_given(p, "modules") || (patterns.size() == 1 && patterns[0] == found->list + ".*");
    const std::size_t size = found->units.front().size();
    const auto choose = [&](BlockRecompute which, std::size_t number) {
      choice.which = which;
      choice.number = static_cast<std::uint32_t>(number);
    };
    if (!is_of_blocks || p.word("outputs") == "drop") {
      choice.why = "it names modules, which may be some of their list";
    } else if (takes_all(p) && found->single() && found->in_groups(1)) {
      choose(BlockRecompute::every_block, 1);
    } else if (takes_all(p) && size > 1 && found->in_groups(size)) {
      choose(BlockRecompute::groups, size);
    } else if (p.word("last") == "keep") {
      choice.why = "it keeps the last block";
    } else if (p.word("spread") == "even" && found->every(found->units.front().front() + 1)) {
      choose(BlockRecompute::every_nth, found->units.front().front() + 1);
    } else if (p.word("spread") != "even" && found->single() && found->in_groups(1)) {
      choose(BlockRecompute::first_blocks, found->units.size());
    } else {
      choice.why = fmt::format("its modules are no regular choice of the children of {}", found->list);
    }
  }

  const PlanDocument& d_;
  PlanChoices c_;
  bool claimed_ = false;  // a policy that settings stand for has made the decisions
};

}  // namespace

std::int64_t PlanChoices::samples_of_all_ranks() const {
  constexpr double kExact = 9007199254740992;  // 2^53
  const std::int64_t ranks = shard ? shard->ranks : 1;
  const double all =
      static_cast<double>(batch.samples) * static_cast<double>(batch.forwards) * static_cast<double>(ranks);
  return all < kExact ? batch.samples * batch.forwards * ranks : 0;
}

std::int64_t PlanChoices::gradient_bytes() const {
  return gradient_dtype == "fp32" ? 4 : gradient_dtype.empty() ? 0 : 2;
}

PlanChoices choices_of(const PlanDocument& document, const std::string& gradient_dtype) {
  return ChoiceReader(document, gradient_dtype).read();
}

}  // namespace memwall
