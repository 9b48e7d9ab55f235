#include "sim/trace/batched_sends.h"

#include <cassert>

namespace memwall {

std::vector<OpId> append_batched_sends(TraceBuilder& builder, Op batch, std::span<const PeerExchange> peers,
                                       std::span<const std::uint16_t> beside, std::span<const Use> uses) {
  assert(!peers.empty() && beside.size() + 1 == peers.size());
  batch.kind = OpKind::collective;
  batch.collective = CollectiveKind::send_receive;
  const std::uint16_t stream = batch.stream;
  if (!beside.empty()) {
    const std::uint32_t before = builder.add_event();
    builder.record(before, stream, batch.thread);
    for (const std::uint16_t other : beside) builder.wait(before, other, batch.thread);
  }
  std::vector<OpId> ops;
  for (std::size_t i = 0; i < peers.size(); ++i) {
    batch.stream = i == 0 ? stream : beside[i - 1];
    batch.target = peers[i].rendezvous;
    batch.group = peers[i].group;
    batch.bytes = peers[i].bytes;
    batch.duration = peers[i].duration;
    ops.push_back(builder.append(batch, i == 0 ? uses : std::span<const Use>{}));
    batch.host_gap = batch.host_cost = {};  // of one call
    batch.framework_calls = 0;
  }
  for (const std::uint16_t other : beside) {
    const std::uint32_t done = builder.add_event();
    builder.record(done, other, batch.thread);
    builder.wait(done, stream, batch.thread);
  }
  return ops;
}

}  // namespace memwall
