#include <fmt/format.h>

#include <fstream>
#include <limits>
#include <optional>
#include <set>

#include "sim/files/input_file.h"
#include "traces/plan/plan_document.h"
#include "traces/plan/plan_file.h"
#include "traces/plan/plan_json.h"
#include "traces/plan/plan_origin.h"
#include "traces/plan/plan_version.h"
#include "traces/plan/realization_text.h"

namespace memwall {
namespace {

namespace dom = simdjson::dom;

constexpr std::size_t kLargestPlan = std::size_t{1} << 30;  // bytes
constexpr std::uint64_t kMostOps = std::numeric_limits<std::uint32_t>::max() - 1;

class PlanReader {
 public:
  // Without a trace and a machine nothing is held against them; with one there is the other.
  PlanReader(const std::string& name, std::string_view text, const Trace* trace, const Machine* machine)
      : json_(name), t_(trace), machine_(machine), text_(text) {}

  PlanDocument read() {
    dom::element document;
    if (const auto error = parser_.parse(text_).get(document); error)
      json_.fail("", fmt::format("the JSON is damaged ({})", simdjson::error_message(error)));
    const dom::object root = json_.object(document, "");
    read_head(root);
    document_.policies = read_policies(json_, root);
    document_.step = read_step(json_, root);
    json_.each(root, "tiers", "", [&](dom::object item, const std::string& at) { read_tier(item, at); });
    json_.each(root, "decisions", "", [&](dom::object item, const std::string& at) { read_decision(item, at); });
    json_.each(root, "reruns", "", [&](dom::object item, const std::string& at) { read_rerun(item, at); });
    if (PlanJson::has(root, "keeps"))
      json_.each(root, "keeps", "", [&](dom::object item, const std::string& at) {
        document_.plan.keeps.push_back({storage(item, at), point(item, at)});
      });
    if (PlanJson::has(root, "realization"))
      document_.realization = read_realization(
          json_, json_.object(json_.member(root, "realization", ""), "realization"), document_.plan.tiers);
    if (PlanJson::has(root, "expected"))
      document_.expected = read_expectation(json_, json_.object(json_.member(root, "expected", ""), "expected"));
    return std::move(document_);
  }

 private:
  static std::string inside(const std::string& at, const char* key) { return PlanJson::inside(at, key); }

  void read_head(dom::object root) {
    const std::string format = json_.text(root, "format", "");
    if (format != kPlanFormat) json_.fail("format", fmt::format("found \"{}\"; expected \"{}\"", format, kPlanFormat));
    const std::uint32_t version = json_.count(root, "version", "");
    if (version != kPlanVersion) json_.fail("version", fmt::format("found {}; expected {}", version, kPlanVersion));
    document_.made_by = json_.text_or_nothing(root, "made_by", "");
    const dom::object trace = json_.object(json_.member(root, "trace", ""), "trace");
    document_.fingerprint = json_.text(trace, "fingerprint", "trace");
    document_.trace = json_.text(trace, "name", "trace");
    document_.ops = json_.number(trace, "ops", "trace", kMostOps);
    document_.storages = json_.number(trace, "storages", "trace", kMostOps);
    if (t_ != nullptr) check_program();
  }

  void check_program() const {
    if (const std::string is = fmt::format("{:016x}", program_fingerprint(*t_)); document_.fingerprint != is)
      json_.fail(
          "trace.fingerprint",
          fmt::format("the plan is for another program ({}, {} ops, fingerprint {}{}); this one is {} "
                      "({} ops, {})",
                      document_.trace, document_.ops, document_.fingerprint,
                      document_.made_by.empty() ? "" : "; made by " + document_.made_by, t_->name, t_->ops.size(), is));
  }

  std::uint64_t ops() const { return t_ != nullptr ? t_->ops.size() : document_.ops; }
  std::uint64_t storages() const { return t_ != nullptr ? t_->storages.size() : document_.storages; }

  void check_tier(const std::string& name, const std::string& at) const {
    if (name.empty() || machine_ == nullptr || machine_->tier(name) >= 0) return;
    std::vector<std::string> known;
    for (const Tier& tier : machine_->tiers) known.push_back(tier.name);
    json_.fail(at,
               fmt::format("machine {} has no tier \"{}\"; expected one of {}", machine_->name, name, listed(known)));
  }

  void read_tier(dom::object from, const std::string& at) {
    TransferStyle style;
    style.tier = json_.text(from, "tier", at);
    style.through = json_.text_or_nothing(from, "through", at);
    check_tier(style.tier, inside(at, "tier"));
    check_tier(style.through, inside(at, "through"));
    if (style.tier.empty()) json_.fail(inside(at, "tier"), "found nothing; expected a tier besides device memory");
    for (const auto& [key, name] : {std::pair("tier", style.tier), {"through", style.through}})
      if (name == "hbm") json_.fail(inside(at, key), "found \"hbm\"; expected a tier besides device memory");
    for (const TransferStyle& other : document_.plan.tiers)
      if (other.tier == style.tier)
        json_.fail(inside(at, "tier"), fmt::format("\"{}\" stands there twice; expected each tier once", style.tier));
    style.pinned = json_.flag(from, "pinned", at, true);
    style.side_streams = json_.flag(from, "side_streams", at, true);
    constexpr std::uint64_t kMostStaging = 1024;
    if (PlanJson::has(from, "staging"))
      style.staging = static_cast<std::uint32_t>(json_.number(from, "staging", at, kMostStaging));
    if (!style.through.empty() && style.staging == 0) json_.fail(inside(at, "staging"), "expected 1 or more");
    if (machine_ != nullptr)
      style.tier_class = machine_->tiers[static_cast<std::size_t>(machine_->tier(style.tier))].tier_class;
    std::vector<TransferStyle>& tiers = document_.plan.tiers;
    if (tiers.size() == std::numeric_limits<std::uint8_t>::max()) json_.fail(at, "expected at most 255 tiers");
    tiers.push_back(std::move(style));
  }

  PlanPoint point(dom::object from, const std::string& at) const {
    PlanPoint point;
    point.op = static_cast<OpId>(json_.number(from, "op", at, ops() == 0 ? 0 : ops() - 1));
    point.after = json_.flag(from, "after", at, std::nullopt);
    if (PlanJson::has(from, "order"))
      point.order = static_cast<std::uint32_t>(json_.number(from, "order", at, 0x7fffffff));
    return point;
  }

  std::uint8_t tier(dom::object from, const char* key, const std::string& at) const {
    const std::string name = json_.text(from, key, at);
    const std::vector<TransferStyle>& tiers = document_.plan.tiers;
    for (std::size_t i = 0; i < tiers.size(); ++i)
      if (tiers[i].tier == name) return static_cast<std::uint8_t>(i);
    json_.fail(inside(at, key), fmt::format("\"{}\" is none of the plan's tiers", name));
  }

  StorageId storage(dom::object from, const std::string& at) const {
    return static_cast<StorageId>(json_.number(from, "storage", at, storages() == 0 ? 0 : storages() - 1));
  }

  void read_decision(dom::object from, const std::string& at) {
    StorageDecision d;
    d.storage = storage(from, at);
    if (PlanJson::has(from, "home")) d.home = tier(from, "home", at);
    if (PlanJson::has(from, "held")) d.held = tier(from, "held", at);
    json_.each(from, "copies", at, [&](dom::object item, const std::string& here) {
      d.copies.push_back({point(item, here), tier(item, "to", here)});
    });
    json_.each(from, "drops", at,
               [&](dom::object item, const std::string& here) { d.drops.push_back({point(item, here)}); });
    json_.each(from, "fetches", at, [&](dom::object item, const std::string& here) {
      d.fetches.push_back({point(item, here),
                           PlanJson::has(item, "from") ? tier(item, "from", here) : PlannedFetch::kNoTier,
                           json_.flag(item, "latest_safe", here, false)});
    });
    if (!decided_.insert(d.storage).second)
      json_.fail(inside(at, "storage"),
                 fmt::format("there are two decisions about storage {}; expected one", d.storage));
    document_.plan.storages.push_back(std::move(d));
    DecisionNotes notes{json_.text_or_nothing(from, "label", at), json_.text_or_nothing(from, "kind", at),
                        json_.text_or_nothing(from, "producer", at), json_.text_or_nothing(from, "module", at),
                        json_.flag(from, "made_again", at, false)};
    if (PlanJson::has(from, "bytes")) notes.bytes = json_.bytes(from, "bytes", at);
    document_.notes.push_back(std::move(notes));
  }

  void read_rerun(dom::object from, const std::string& at) {
    PlannedRerun rerun{point(from, at), op_list(from, "ops", at)};
    if (PlanJson::has(from, "called")) rerun.called = op_list(from, "called", at);
    document_.plan.reruns.push_back(std::move(rerun));
    std::map<std::string, std::uint64_t>& modules = document_.rerun_modules.emplace_back();
    if (!PlanJson::has(from, "modules")) return;
    const std::string here = inside(at, "modules");
    for (const auto [module, count] : json_.object(json_.member(from, "modules", at), here)) {
      std::uint64_t number = 0;
      if (count.get_uint64().get(number) || number > kMostOps)
        json_.fail_of(count, inside(here, std::string(module).c_str()), "a number of ops");
      modules[std::string(module)] = number;
    }
  }

  std::vector<OpId> op_list(dom::object from, const char* key, const std::string& at) const {
    std::vector<OpId> list;
    json_.each_item(json_.member(from, key, at), inside(at, key), [&](dom::element op, const std::string& here) {
      std::uint64_t id = 0;
      if (op.get_uint64().get(id) || id >= ops())
        json_.fail_of(op, here, fmt::format("the number of an op, below {}", ops()));
      list.push_back(static_cast<OpId>(id));
    });
    return list;
  }

  const PlanJson json_;
  const Trace* const t_;
  const Machine* const machine_;
  simdjson::padded_string text_;
  dom::parser parser_;
  PlanDocument document_;
  std::set<StorageId> decided_;
};

}  // namespace

MemoryPlan read_plan(const std::filesystem::path& path, const Trace& trace, const Machine& machine) {
  const std::string text = content_of_file(path, kLargestPlan, "a memory plan");
  return plan_of_text(text, path.string(), trace, machine);
}

MemoryPlan plan_of_text(std::string_view text, const std::string& name, const Trace& trace, const Machine& machine) {
  return PlanReader(name, text, &trace, &machine).read().plan;
}

PlanDocument read_plan_document(const std::filesystem::path& path) {
  const std::string text = content_of_file(path, kLargestPlan, "a memory plan");
  return PlanReader(path.string(), text, nullptr, nullptr).read();
}

bool is_plan(const std::filesystem::path& path) {
  std::ifstream file(readable_path_or_none(path), std::ios::binary);
  std::string head(4096, '\0');
  file.read(head.data(), static_cast<std::streamsize>(head.size()));
  head.resize(static_cast<std::size_t>(std::max<std::streamsize>(0, file.gcount())));
  const std::size_t first = head.find_first_not_of(" \t\r\n");
  return first != head.npos && head[first] == '{' && head.find(fmt::format("\"{}\"", kPlanFormat)) != head.npos;
}

}  // namespace memwall
