#include "policies/plan/forward_names.h"

#include <algorithm>
#include <set>

#include "policies/trace/module_blocks.h"
#include "policies/trace/operator_name.h"
#include "policies/trace/segments.h"

namespace memwall {

bool is_within(std::string_view module, std::string_view path) {
  return module.starts_with(path) && (module.size() == path.size() || module[path.size()] == '.');
}

ForwardNames::ForwardNames(const Trace& trace, const Dataflow& flow, const Pass& pass)
    : t_(trace), flow_(flow), pass_(pass) {
  call_of_.assign(pass.backward - pass.begin, kNoCall);
  for (const OpId id : forward_ops(trace, pass)) call_of_[id - pass.begin] = calls_[key_of(id)]++;
  find_saved();
  learn_modules();
}

const std::string& ForwardNames::operator_at(OpId op) const { return operator_of(t_, t_.ops[op]); }

void ForwardNames::find_saved() {
  std::set<StorageId> written;
  for (OpId id = pass_.begin; id < pass_.backward; ++id) {
    if (!holds(id)) continue;
    for (const Use& use : t_.uses_of(t_.ops[id]))
      if (use.access == Access::write) written.insert(use.storage);
  }
  for (const StorageId s : written)
    if (is_saved_activation(t_, flow_, pass_, s) && flow_.touches(s).back().op >= pass_.backward) saved_.push_back(s);
  for (const StorageId s : saved_) {
    std::set<std::string> modules;
    for (const OpId writer : flow_.writers(s))
      for (std::string& part : leading_parts(module_of(writer))) modules.insert(std::move(part));
    for (const std::string& module : modules) saved_in_[module].push_back(s);
  }
}

void ForwardNames::learn_modules() {
  std::set<std::string> paths;
  for (OpId id = pass_.begin; id < pass_.backward; ++id)
    if (holds(id)) paths.insert(module_of(id));
  for (const std::string& path : paths) {
    const std::vector<std::string> parts = leading_parts(path);
    for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
      const std::string_view child = std::string_view(parts[i + 1]).substr(parts[i].size() + 1);
      const bool number = child.find_first_not_of("0123456789") == child.npos;
      const auto [known, first] = is_list_.try_emplace(parts[i], number);
      known->second = known->second && number;
    }
    is_list_[path] = false;  // it has ops of its own
  }
}

bool ForwardNames::is_saved(StorageId storage) const {
  return std::binary_search(saved_.begin(), saved_.end(), storage);
}

std::span<const StorageId> ForwardNames::saved_in(const std::string& module) const {
  const auto found = saved_in_.find(module);
  return found == saved_in_.end() ? std::span<const StorageId>{} : std::span<const StorageId>(found->second);
}

bool ForwardNames::is_read_outside(StorageId storage, const std::vector<std::string>& modules) const {
  const auto touches = flow_.touches(storage);
  return std::any_of(touches.begin(), touches.end(), [&](const Touch& touch) {
    if (!touch.reads || touch.op >= pass_.backward || !holds(touch.op)) return false;
    return std::none_of(modules.begin(), modules.end(),
                        [&](const std::string& path) { return is_within(module_of(touch.op), path); });
  });
}

OpId ForwardNames::last_forward_use(StorageId storage) const {
  OpId last = kNoOp;
  for (const Touch& touch : flow_.touches(storage))
    if (touch.op < pass_.backward) last = touch.op;
  return last;
}

OpId ForwardNames::saved_at(StorageId storage) const {
  for (const Touch& touch : flow_.touches(storage)) {
    const Op& op = t_.ops[touch.op];
    const auto uses = t_.uses_of(op);
    if (touch.op < pass_.backward) {
      if (std::any_of(uses.begin(), uses.end(), [&](const Use& u) { return u.storage == storage && u.saved; }))
        return touch.op;
    } else if (repeats(op)) {
      return op.source;
    }
  }
  return last_forward_use(storage);
}

bool ForwardNames::is_list(const std::string& module) const {
  const auto found = is_list_.find(module);
  return found != is_list_.end() && found->second;
}

bool ForwardNames::are_profiler_names() const {
  const auto is_class_and_number = [](std::string_view part) {
    const std::size_t digits = part.find_last_not_of("0123456789") + 1;
    return digits > 1 && digits < part.size() && part[digits - 1] == '_';
  };
  bool any = false;
  for (const auto& [path, list] : is_list_) {
    if (path.empty()) continue;
    any = true;
    if (!is_class_and_number(std::string_view(path).substr(path.rfind('.') + 1))) return false;
  }
  return any;
}

NamedOperator ForwardNames::maker_of(StorageId storage) const {
  const OpId maker = flow_.writers(storage).front();
  return {module_of(maker), operator_at(maker), {call_of_[maker - pass_.begin]}};
}

std::vector<NamedOperator> ForwardNames::named(const std::vector<OpId>& ops) const {
  std::map<Key, std::size_t> places;
  std::vector<NamedOperator> names;
  std::vector<std::uint32_t> totals;
  for (const OpId id : ops) {
    const auto [place, first] = places.try_emplace(key_of(id), names.size());
    if (first) {
      names.push_back({module_of(id), operator_at(id)});
      totals.push_back(calls_.at(key_of(id)));
    }
    names[place->second].calls.push_back(call_of_[id - pass_.begin]);
  }
  for (std::size_t i = 0; i < names.size(); ++i)
    if (names[i].calls.size() == totals[i]) names[i].calls.clear();
  return names;
}

}  // namespace memwall
