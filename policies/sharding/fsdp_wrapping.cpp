#include "policies/sharding/fsdp_wrapping.h"

#include <algorithm>

namespace memwall {
namespace {

constexpr Bytes kBroadcastBuffer =
    250 << 20;  // Source: torch/distributed/fsdp/_init_utils.py, PARAM_BROADCAST_BUCKET_SIZE
constexpr InsertionPoint kBeforeAll{0, false};

class Wrapping {
 public:
  Wrapping(FsdpProgram& program, const FsdpUnits& units, const FsdpLayout& layout, const FsdpSettings& settings,
           std::uint16_t compute)
      : program_(program), units_(units), layout_(layout), settings_(settings), compute_(compute) {}

  void wrap(std::size_t unit) {
    const auto& all = units_.all();
    for (std::size_t inner = 1; inner < all.size(); ++inner)
      if (inner != unit && all[inner].parent == unit) wrap(inner);
    if (!all[unit].parameters.empty()) join(all[unit]);
  }

 private:
  StorageId alloc(Bytes bytes, const FsdpUnit& unit, const char* label) {
    return program_.alloc(kBeforeAll, bytes, StorageKind::workspace, unit.parameters.front(), label, compute_);
  }

  // Buffers are filled until the next parameter would not fit; one alone may be larger.
  void broadcast(const FsdpUnit& unit) {
    Bytes filled = 0;
    const auto send = [&] {
      if (filled > 0) program_.free(kBeforeAll, alloc(filled, unit, "fsdp.broadcast"));
      filled = 0;
    };
    for (const StorageId p : unit.parameters) {
      const Bytes bytes = program_.base().storages[p].bytes;
      if (filled + bytes > kBroadcastBuffer) send();
      filled += bytes;
    }
    send();
  }

  void join(const FsdpUnit& unit) {
    std::vector<StorageId> moved;
    Bytes flat = 0;
    for (const StorageId p : unit.parameters) {
      moved.push_back(alloc(program_.base().storages[p].bytes, unit, "fsdp.moved"));
      flat += layout_.padded_bytes(p);
    }
    if (settings_.broadcasts_states) broadcast(unit);
    const StorageId whole = alloc(flat, unit, "fsdp.joined");
    for (const StorageId storage : moved) program_.free(kBeforeAll, storage);
    if (settings_.offloads) program_.free(kBeforeAll, alloc(flat / layout_.shards(), unit, "fsdp.cut"));
    program_.free(kBeforeAll, whole);
  }

  FsdpProgram& program_;
  const FsdpUnits& units_;
  const FsdpLayout& layout_;
  const FsdpSettings& settings_;
  std::uint16_t compute_;
};

}  // namespace

void wrap_units(FsdpProgram& program, const FsdpUnits& units, const FsdpLayout& layout, const FsdpSettings& settings,
                std::uint16_t compute) {
  Wrapping(program, units, layout, settings, compute).wrap(0);
}

}  // namespace memwall
