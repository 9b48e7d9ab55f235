#include "sim/error.h"
#include "traces/plan/realization_text.h"

namespace memwall {
namespace {

using Object = simdjson::dom::object;

class RealizationReader {
 public:
  RealizationReader(const PlanJson& json, const std::vector<TransferStyle>& tiers) : json_(json), tiers_(tiers) {}

  PlanRealization read(Object from) const {
    const std::string at = "realization";
    PlanRealization found;
    found.forwards = json_.count(from, "forwards", at);
    json_.each(from, "recompute", at,
               [&](Object item, const std::string& here) { found.recompute.push_back(modules(item, here)); });
    json_.each(from, "lazy_ops", at, [&](Object item, const std::string& here) {
      OperatorRecompute lazy;
      json_.each(item, "ops", here,
                 [&](Object op, const std::string& there) { lazy.operators.push_back(named(op, there)); });
      lazy.preserve_rng = json_.flag(item, "preserve_rng", here, false);
      found.lazy_operators.push_back(std::move(lazy));
    });
    if (PlanJson::has(from, "model"))
      found.parameters = model(json_.object(json_.member(from, "model", at), PlanJson::inside(at, "model")));
    if (PlanJson::has(from, "runs_again")) read_runs_again(from, at, found);
    json_.each(from, "offload", at,
               [&](Object item, const std::string& here) { found.offload.push_back(offload(item, here)); });
    json_.each(from, "homes", at,
               [&](Object item, const std::string& here) { found.homes.push_back(home(item, here)); });
    if (PlanJson::has(from, "optimizer")) found.optimizer = optimizer(from, at);
    json_.each(from, "unnamed", at, [&](Object item, const std::string& here) {
      found.unnamed.push_back({json_.text(item, "what", here), json_.text(item, "reason", here),
                               json_.number(item, "storages", here, kMostStorages), json_.bytes(item, "bytes", here)});
    });
    return found;
  }

 private:
  static constexpr std::uint64_t kMostStorages = 0xffffffff, kMostBytes = std::uint64_t{1} << 60;

  NamedOperator named(Object from, const std::string& at) const {
    return {json_.text(from, "module", at), json_.text(from, "op", at), numbers(from, "calls", at),
            numbers(from, "keeps", at)};
  }

  // None where the list is absent.
  std::vector<std::uint32_t> numbers(Object from, const char* key, const std::string& at) const {
    std::vector<std::uint32_t> found;
    if (!PlanJson::has(from, key)) return found;
    const std::string list = PlanJson::inside(at, key);
    json_.each_item(json_.member(from, key, at), list, [&](simdjson::dom::element item, const std::string& here) {
      std::uint64_t number = 0;
      if (item.get_uint64().get(number) || number > kMostStorages) json_.fail(here, "expected a whole number");
      found.push_back(static_cast<std::uint32_t>(number));
    });
    return found;
  }

  // Lists of as many items as names are wanted.
  template <typename Take>
  void each_row(Object from, const char* key, const std::string& at, const char* expected, Take take) const {
    json_.each_item(json_.member(from, key, at), PlanJson::inside(at, key),
                    [&](simdjson::dom::element item, const std::string& here) {
                      simdjson::dom::array row;
                      simdjson::dom::element first, second, third;
                      if (item.get_array().get(row) || row.at(0).get(first) || row.at(1).get(second) ||
                          !row.at(2).get(third) || !take(first, second))
                        json_.fail_of(item, here, expected);
                    });
  }

  // What the fingerprint says of the names is held against them: who changes one has to change the other.
  std::vector<NamedParameter> model(Object from) const {
    const std::string at = "realization.model";
    std::vector<NamedParameter> found;
    each_row(from, "parameters", at, "a name and its bytes, ascending by name",
             [&](simdjson::dom::element first, simdjson::dom::element second) {
               std::string_view name;
               std::uint64_t bytes = 0;
               if (first.get_string().get(name) || second.get_uint64().get(bytes) || bytes > kMostBytes) return false;
               if (!found.empty() && found.back().name >= name) return false;
               found.push_back({std::string(name), static_cast<Bytes>(bytes)});
               return true;
             });
    const std::string print = json_.text(from, "fingerprint", at);
    if (const std::string own = fmt::format("{:016x}", fingerprint_of(found)); print != own)
      json_.fail(PlanJson::inside(at, "fingerprint"),
                 fmt::format("found \"{}\"; expected \"{}\", that of its parameters", print, own));
    return found;
  }

  void read_runs_again(Object from, const std::string& at, PlanRealization& found) const {
    std::uint64_t units = 0;
    for (const ModuleRecompute& recompute : found.recompute) units += recompute.units.size();
    json_.each(from, "runs_again", at, [&](Object item, const std::string& here) {
      NamedRerunOps again;
      again.unit = index(item, "unit", here, units);
      again.lazy = index(item, "lazy", here, found.lazy_operators.size());
      each_row(item, "ops", here, "a module and an operator",
               [&](simdjson::dom::element first, simdjson::dom::element second) {
                 std::string_view module, name;
                 if (first.get_string().get(module) || second.get_string().get(name)) return false;
                 again.operators.push_back({std::string(module), std::string(name)});
                 return true;
               });
      found.runs_again.push_back(std::move(again));
    });
  }

  std::optional<std::uint64_t> index(Object from, const char* key, const std::string& at, std::uint64_t count) const {
    if (!PlanJson::has(from, key)) return std::nullopt;
    if (count == 0) json_.fail(PlanJson::inside(at, key), "there is none that it could be");
    return json_.number(from, key, at, count - 1);
  }

  // The number of a storage, or -1.
  std::int64_t number_or_end(Object from, const char* key, const std::string& at) const {
    std::int64_t found = 0;
    const simdjson::dom::element element = json_.member(from, key, at);
    if (element.get_int64().get(found) || found < HookMove::kEnd || found > static_cast<std::int64_t>(kMostStorages))
      json_.fail_of(element, PlanJson::inside(at, key), "the number of a storage, or -1");
    return found;
  }

  void read_moves(Object from, const std::string& at, NamedOffload& found) const {
    found.count_min_bytes = json_.bytes(from, "count_min_bytes", at);
    json_.each(from, "moves", at, [&](Object item, const std::string& here) {
      HookMove move{.number = json_.number(item, "number", here, kMostStorages)};
      move.bytes = json_.bytes(item, "bytes", here);
      move.made_by = {
          json_.text(item, "module", here), json_.text(item, "op", here), {json_.count(item, "call", here)}};
      move.give_back = number_or_end(item, "give_back", here);
      move.fetch = number_or_end(item, "fetch", here);
      found.moves.push_back(std::move(move));
    });
    const std::string order = PlanJson::inside(at, "fetch_order");
    json_.each_item(json_.member(from, "fetch_order", at), order,
                    [&](simdjson::dom::element item, const std::string& here) {
                      std::uint64_t number = 0;
                      if (item.get_uint64().get(number) || number > kMostStorages)
                        json_.fail_of(item, here, "the number of a storage");
                      found.fetch_order.push_back(number);
                    });
  }

  NamedOptimizer optimizer(Object of, const std::string& above) const {
    const std::string at = PlanJson::inside(above, "optimizer");
    const Object from = json_.object(json_.member(of, "optimizer", above), at);
    NamedOptimizer found;
    found.place = json_.text(from, "place", at);
    found.through = json_.text_or_nothing(from, "through", at);
    found.implementation = json_.text(from, "implementation", at);
    if (found.implementation != "cpu_adam" && found.implementation != "streamed")
      json_.fail(PlanJson::inside(at, "implementation"),
                 fmt::format("found \"{}\"; expected cpu_adam or streamed", found.implementation));
    found.pinned = json_.flag(from, "pinned", at, true);
    found.side_streams = json_.flag(from, "side_streams", at, true);
    found.near_memory = json_.flag(from, "near_memory", at, false);
    found.pipeline = json_.flag(from, "pipeline", at, false);
    found.group_parameters = json_.number(from, "group_parameters", at, kMostBytes);
    found.prefetch = json_.count(from, "prefetch", at);
    found.buffers = json_.count(from, "buffers", at);
    found.staging = json_.count(from, "staging", at);
    return found;
  }

  ModuleRecompute modules(Object from, const std::string& at) const {
    ModuleRecompute found;
    json_.each_item(
        json_.member(from, "units", at), PlanJson::inside(at, "units"),
        [&](simdjson::dom::element item, const std::string& here) { found.units.push_back(json_.texts(item, here)); });
    found.early_stop = json_.flag(from, "early_stop", at, true);
    found.preserve_rng = json_.flag(from, "preserve_rng", at, false);
    if (PlanJson::has(from, "save_ops"))
      found.save_operators = json_.texts(json_.member(from, "save_ops", at), PlanJson::inside(at, "save_ops"));
    return found;
  }

  std::uint8_t tier(Object from, const std::string& at) const {
    const std::string name = json_.text(from, "tier", at);
    for (std::size_t i = 0; i < tiers_.size(); ++i)
      if (tiers_[i].tier == name) return static_cast<std::uint8_t>(i);
    json_.fail(PlanJson::inside(at, "tier"), fmt::format("\"{}\" is none of the plan's tiers", name));
  }

  NamedOffload offload(Object from, const std::string& at) const {
    NamedOffload found{.tier = tier(from, at)};
    found.storages = json_.number(from, "storages", at, kMostStorages);
    found.bytes = json_.bytes(from, "bytes", at);
    found.min_bytes = json_.bytes(from, "min_bytes", at);
    if (PlanJson::has(from, "first")) found.first = json_.number(from, "first", at, kMostStorages);
    found.buffers = json_.count(from, "buffers", at);
    found.ahead = json_.count(from, "ahead", at);
    json_.each(from, "saved", at, [&](Object item, const std::string& here) {
      found.saved.push_back(
          {named(item, here), json_.number(item, "storages", here, kMostStorages), json_.bytes(item, "bytes", here)});
    });
    if (PlanJson::has(from, "moves")) read_moves(from, at, found);
    return found;
  }

  StorageKind kind(Object from, const std::string& at) const {
    const std::string name = json_.text(from, "kind", at);
    std::vector<std::string> known;
    for (int k = 0; k < kStorageKinds; ++k) {
      known.emplace_back(to_string(static_cast<StorageKind>(k)));
      if (known.back() == name) return static_cast<StorageKind>(k);
    }
    json_.fail(PlanJson::inside(at, "kind"), fmt::format("found \"{}\"; expected one of {}", name, listed(known)));
  }

  NamedHome home(Object from, const std::string& at) const {
    NamedHome found{.tier = tier(from, at), .kind = kind(from, at)};
    found.lives_there = json_.flag(from, "lives_there", at, true);
    found.all = json_.flag(from, "all", at, false);
    if (PlanJson::has(from, "names"))
      found.names = json_.texts(json_.member(from, "names", at), PlanJson::inside(at, "names"));
    found.storages = json_.number(from, "storages", at, kMostStorages);
    found.bytes = json_.bytes(from, "bytes", at);
    return found;
  }

  const PlanJson& json_;
  const std::vector<TransferStyle>& tiers_;
};

}  // namespace

PlanRealization read_realization(const PlanJson& json, Object from, const std::vector<TransferStyle>& tiers) {
  return RealizationReader(json, tiers).read(from);
}

PlanExpectation read_expectation(const PlanJson& json, Object from) {
  const std::string at = "expected";
  PlanExpectation found;
  found.machine = json.text(from, "machine", at);
  found.allocator = json.text(from, "allocator", at);
  found.fits = json.flag(from, "fits", at, true);
  if (PlanJson::has(from, "over_budget_bytes")) found.over_budget = json.bytes(from, "over_budget_bytes", at);
  found.peak_requested = json.bytes(from, "peak_requested_bytes", at);
  found.peak_reserved = json.bytes(from, "peak_reserved_bytes", at);
  found.step_time = json.seconds(from, "step_time_s", at);
  found.recomputed_ops = json.number(from, "recomputed_ops", at, std::uint64_t{1} << 40);
  found.recompute_time = json.seconds(from, "recompute_time_s", at);
  json.each(from, "copied", at, [&](Object item, const std::string& here) {
    found.copies.push_back(
        {json.text(item, "from", here), json.text(item, "to", here), json.bytes(item, "bytes", here)});
  });
  return found;
}

}  // namespace memwall
