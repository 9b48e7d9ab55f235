// What tests of `deepspeed` ask of a rewritten trace.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/support/layer_trace.h"
#include "tests/support/races.h"
#include "tests/support/rewrite_checks.h"

namespace memwall::deepspeed_checks {

inline std::string deepspeed(int stage, int ranks, const std::string& more = "") {
  return "deepspeed:stage=" + std::to_string(stage) + ",ranks=" + std::to_string(ranks) + ",hook_us=0" + more;
}

// Layers of so many elements of 2 bytes each.
inline LayerShape layers(const std::vector<Bytes>& elements, int passes = 1, int steps = 1) {
  LayerShape shape;
  shape.parameter_bytes.clear();
  for (const Bytes n : elements) shape.parameter_bytes.push_back(2 * n);
  shape.passes = passes;
  shape.steps = steps;
  return shape;
}

// A step of layers whose weights are in fp32, half as many elements, with two moments and no copy of them.
inline Trace in_fp32(Trace t) {
  for (Op& op : t.ops) op.data_type = DataType::fp32;
  Bytes weight = 0;
  bool is_copy = false;  // the first state behind a weight
  for (Storage& s : t.storages) {
    if (s.kind == StorageKind::parameter) weight = s.bytes;
    if (s.kind == StorageKind::optimizer_state) {
      s.bytes = weight;
      if (is_copy) s.kind = StorageKind::workspace;
    }
    is_copy = s.kind == StorageKind::parameter;
  }
  return t;
}

// Nothing stays gathered, nothing is kept, nothing is fetched ahead.
inline constexpr const char* kBare = ",param_persistence_threshold=0,max_reuse_distance=0,prefetch_bucket_size=0";

// The layers whose parameters gathers bring, and the layers that run, in host order: "g0 0 g1 1 ...".
inline std::string gathers_and_kernels(const Trace& t) {
  std::string text;
  for (const Op& op : t.ops) {
    if (op.kind == OpKind::collective && op.collective == CollectiveKind::all_gather) {
      text += "g";
      for (const Use& use : t.uses_of(op))
        if (use.access == Access::read) text += t.strings[t.storages[use.storage].label].substr(7);
      text += " ";
    }
    const std::string& name = t.strings[op.name];
    if (name == "linear" || name == "linear_backward") text += t.strings[op.module].substr(7) + " ";
  }
  return text;
}

inline bool is_named(const Trace& t, const Op& op, const std::string& name) {
  return t.strings[op.name] == "deepspeed." + name;
}

// Bytes on the wire by one rank. Those of the gradients' norm and of the flag for overflow are not counted.
inline Bytes sent(const Trace& t, CollectiveKind kind) {
  Bytes bytes = 0;
  for (const Op& op : t.ops)
    if (op.kind == OpKind::collective && op.collective == kind && !t.uses_of(op).empty() &&
        !t.strings[t.storages[t.uses_of(op).front().storage].label].starts_with("deepspeed.gradient_"))
      bytes += op.bytes;
  return bytes;
}

// Names of device work, host work and waits of DeepSpeed alone, in host order, without its prefix.
inline std::vector<std::string> added_order(const Trace& t) {
  std::vector<std::string> names;
  for (const Op& op : t.ops) {
    const std::string& name = t.strings[op.name];
    if (op.kind == OpKind::synchronize)
      names.push_back("synchronize");
    else if (name.starts_with("deepspeed."))
      names.push_back(name.substr(10));
  }
  return names;
}

inline std::size_t count_named(const Trace& t, const std::string& name) {
  return static_cast<std::size_t>(
      std::count_if(t.ops.begin(), t.ops.end(), [&](const Op& op) { return is_named(t, op, name); }));
}

inline std::vector<OpId> ops_named(const Trace& t, const std::string& name) {
  std::vector<OpId> ops;
  for (OpId id = 0; id < t.ops.size(); ++id)
    if (is_named(t, t.ops[id], name)) ops.push_back(id);
  return ops;
}

inline Bytes at_rest(const Trace& t, StorageKind kind, const std::string& place = "hbm") {
  Bytes bytes = 0;
  for (const Storage& s : t.storages)
    if (s.preexisting && s.kind == kind && t.places[s.place] == place) bytes += s.bytes;
  return bytes;
}

// Of the first storage that DeepSpeed calls so; -1: there is none.
inline Bytes labelled(const Trace& t, const std::string& label) {
  for (const Storage& s : t.storages)
    if (t.strings[s.label] == "deepspeed." + label) return s.bytes;
  return -1;
}

// By copies to the host, and back.
inline std::pair<Bytes, Bytes> copied(const Trace& t) {
  Bytes out = 0, in = 0;
  for (const Op& op : t.ops)
    if (op.kind == OpKind::copy) (t.places[op.to] == "host" ? out : in) += op.bytes;
  return {out, in};
}

inline void expect_sound(const Trace& t) {
  EXPECT_EQ(check(t), std::vector<std::string>{});
  EXPECT_EQ(races(t), std::vector<std::string>{});
}

}  // namespace memwall::deepspeed_checks
