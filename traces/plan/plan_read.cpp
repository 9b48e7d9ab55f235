#include <fmt/format.h>
#include <simdjson.h>

#include <limits>
#include <optional>

#include "sim/error.h"
#include "sim/files/input_file.h"
#include "traces/plan/plan_file.h"
#include "traces/plan/plan_version.h"

namespace memwall {
namespace {

namespace dom = simdjson::dom;

constexpr std::size_t kLargestPlan = std::size_t{1} << 30;  // bytes

class PlanReader {
 public:
  PlanReader(const std::filesystem::path& path, const Trace& trace, const Machine& machine)
      : path_(path), t_(trace), machine_(machine), text_(content_of_file(path, kLargestPlan, "a memory plan")) {}

  MemoryPlan read() {
    dom::element document;
    if (const auto error = parser_.parse(text_).get(document); error)
      fail("", fmt::format("the JSON is damaged ({})", simdjson::error_message(error)));
    const dom::object root = object(document, "");
    check_head(root);
    each(root, "tiers", "", [&](dom::object item, const std::string& at) { read_tier(item, at); });
    each(root, "decisions", "", [&](dom::object item, const std::string& at) { read_decision(item, at); });
    each(root, "reruns", "", [&](dom::object item, const std::string& at) { read_rerun(item, at); });
    return std::move(plan_);
  }

 private:
  [[noreturn]] void fail(const std::string& at, const std::string& what) const {
    throw InputError(fmt::format("{}{}{}: {}.", path_.string(), at.empty() ? "" : ", ", at, what));
  }

  // --- values

  dom::object object(dom::element element, const std::string& at) const {
    dom::object found;
    if (element.get_object().get(found)) fail(at, "expected an object");
    return found;
  }

  dom::element member(dom::object of, const char* key, const std::string& at) const {
    dom::element found;
    if (of.at_key(key).get(found)) fail(at, fmt::format("\"{}\" is missing", key));
    return found;
  }

  static std::string inside(const std::string& at, const char* key) { return at.empty() ? key : at + "." + key; }

  // A whole number from 0 to `most`.
  std::uint64_t number(dom::object of, const char* key, const std::string& at, std::uint64_t most) const {
    std::uint64_t found = 0;
    if (member(of, key, at).get_uint64().get(found) || found > most)
      fail(inside(at, key), fmt::format("expected a whole number from 0 to {}", most));
    return found;
  }

  bool flag(dom::object of, const char* key, const std::string& at, std::optional<bool> otherwise) const {
    dom::element element;
    if (of.at_key(key).get(element)) {
      if (otherwise) return *otherwise;
      fail(at, fmt::format("\"{}\" is missing", key));
    }
    bool found = false;
    if (element.get_bool().get(found)) fail(inside(at, key), "expected true or false");
    return found;
  }

  std::string text(dom::object of, const char* key, const std::string& at) const {
    std::string_view found;
    if (member(of, key, at).get_string().get(found)) fail(inside(at, key), "expected a text");
    return std::string(found);
  }

  bool has(dom::object of, const char* key) const {
    dom::element found;
    return !of.at_key(key).get(found);
  }

  template <typename Take>
  void each(dom::object of, const char* key, const std::string& at, Take take) const {
    dom::array items;
    if (member(of, key, at).get_array().get(items)) fail(inside(at, key), "expected a list");
    std::size_t index = 0;
    for (const dom::element item : items) {
      const std::string here = fmt::format("{}[{}]", inside(at, key), index++);
      take(object(item, here), here);
    }
  }

  // --- the plan

  void check_head(dom::object root) const {
    const std::string format = text(root, "format", "");
    if (format != kPlanFormat) fail("format", fmt::format("found \"{}\"; expected \"{}\"", format, kPlanFormat));
    const std::uint64_t version = number(root, "version", "", std::numeric_limits<std::uint32_t>::max());
    if (version != kPlanVersion) fail("version", fmt::format("found {}; expected {}", version, kPlanVersion));
    const dom::object trace = object(member(root, "trace", ""), "trace");
    const std::string made_for = text(trace, "fingerprint", "trace"),
                      is = fmt::format("{:016x}", program_fingerprint(t_));
    if (made_for != is)
      fail("trace.fingerprint",
           fmt::format("the plan is for another program ({}, {} ops, fingerprint {}); this one is {} "
                       "({} ops, {})",
                       text(trace, "name", "trace"),
                       number(trace, "ops", "trace", std::numeric_limits<std::uint32_t>::max()), made_for, t_.name,
                       t_.ops.size(), is));
  }

  void read_tier(dom::object from, const std::string& at) {
    TransferStyle style;
    style.tier = text(from, "tier", at);
    style.through = has(from, "through") ? text(from, "through", at) : "";
    for (const auto& [key, name] : {std::pair("tier", style.tier), std::pair("through", style.through)})
      if (!name.empty() && machine_.tier(name) < 0) {
        std::vector<std::string> known;
        for (const Tier& tier : machine_.tiers) known.push_back(tier.name);
        fail(inside(at, key),
             fmt::format("machine {} has no tier \"{}\"; expected one of {}", machine_.name, name, listed(known)));
      }
    if (style.tier.empty() || style.tier == "hbm") fail(inside(at, "tier"), "expected a tier besides device memory");
    style.pinned = flag(from, "pinned", at, true);
    style.side_streams = flag(from, "side_streams", at, true);
    constexpr std::uint64_t kMostStaging = 1024;
    style.staging = has(from, "staging") ? static_cast<std::uint32_t>(number(from, "staging", at, kMostStaging)) : 2;
    if (!style.through.empty() && style.staging == 0) fail(inside(at, "staging"), "expected 1 or more");
    style.tier_class = machine_.tiers[static_cast<std::size_t>(machine_.tier(style.tier))].tier_class;
    if (plan_.tiers.size() == std::numeric_limits<std::uint8_t>::max()) fail(at, "expected at most 255 tiers");
    plan_.tiers.push_back(std::move(style));
  }

  PlanPoint point(dom::object from, const std::string& at) const {
    PlanPoint point;
    point.op = static_cast<OpId>(number(from, "op", at, t_.ops.empty() ? 0 : t_.ops.size() - 1));
    point.after = flag(from, "after", at, std::nullopt);
    if (has(from, "order")) point.order = static_cast<std::uint32_t>(number(from, "order", at, 0x7fffffff));
    return point;
  }

  std::uint8_t tier(dom::object from, const char* key, const std::string& at) const {
    const std::string name = text(from, key, at);
    for (std::size_t i = 0; i < plan_.tiers.size(); ++i)
      if (plan_.tiers[i].tier == name) return static_cast<std::uint8_t>(i);
    fail(inside(at, key), fmt::format("\"{}\" is none of the plan's tiers", name));
  }

  void read_decision(dom::object from, const std::string& at) {
    StorageDecision d;
    d.storage = static_cast<StorageId>(number(from, "storage", at, t_.storages.empty() ? 0 : t_.storages.size() - 1));
    if (has(from, "home")) d.home = tier(from, "home", at);
    d.taken_away = flag(from, "taken_away", at, false);
    each(from, "copies", at, [&](dom::object item, const std::string& here) {
      d.copies.push_back({point(item, here), tier(item, "to", here)});
    });
    each(from, "drops", at, [&](dom::object item, const std::string& here) { d.drops.push_back({point(item, here)}); });
    each(from, "fetches", at, [&](dom::object item, const std::string& here) {
      d.fetches.push_back({point(item, here), has(item, "from") ? tier(item, "from", here) : PlannedFetch::kNoTier});
    });
    plan_.storages.push_back(std::move(d));
  }

  void read_rerun(dom::object from, const std::string& at) {
    PlannedRerun rerun{point(from, at), {}};
    dom::array ops;
    if (member(from, "ops", at).get_array().get(ops)) fail(inside(at, "ops"), "expected a list");
    for (const dom::element op : ops) {
      std::uint64_t id = 0;
      if (op.get_uint64().get(id) || id >= t_.ops.size())
        fail(inside(at, "ops"), fmt::format("expected numbers of ops, below {}", t_.ops.size()));
      rerun.ops.push_back(static_cast<OpId>(id));
    }
    plan_.reruns.push_back(std::move(rerun));
  }

  const std::filesystem::path& path_;
  const Trace& t_;
  const Machine& machine_;
  simdjson::padded_string text_;
  dom::parser parser_;
  MemoryPlan plan_;
};

}  // namespace

MemoryPlan read_plan(const std::filesystem::path& path, const Trace& trace, const Machine& machine) {
  return PlanReader(path, trace, machine).read();
}

}  // namespace memwall
