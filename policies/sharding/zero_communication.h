// The communication ops that sharding adds, priced, and the events that tie their streams to compute.
#pragma once

#include <set>
#include <string_view>
#include <vector>

#include "policies/trace/trace_edit.h"
#include "sim/machine/pricer.h"

namespace memwall {

class CommunicationStream {
 public:
  // `edit` and `pricer` must outlive it. Adds a communication stream of this name.
  CommunicationStream(TraceEdit& edit, const Pricer& pricer, std::uint32_t ranks, std::string_view stream_name);

  std::uint16_t stream() const { return stream_; }
  Bytes bytes_sent() const { return bytes_sent_; }  // by one rank, so far
  std::uint64_t collectives() const { return collectives_; }

  // This stream goes on once everything now submitted to `streams` is done.
  void after(InsertionPoint point, const std::set<std::uint16_t>& streams);
  // `streams` go on once `event`, recorded by mark(), has happened.
  void hold(InsertionPoint point, std::uint32_t event, const std::set<std::uint16_t>& streams);
  std::uint32_t mark(InsertionPoint point) { return edit_.record(point, stream_); }

  // `message`: bytes of the whole, gathered tensor.
  void collective(InsertionPoint point, CollectiveKind kind, Bytes message, const std::vector<StorageId>& reads,
                  const std::vector<StorageId>& writes);
  // A kernel in this stream that reads and writes `bytes` each.
  void copy(InsertionPoint point, std::string_view name, Bytes bytes, const std::vector<StorageId>& reads,
            const std::vector<StorageId>& writes);
  // A storage from this stream's pool.
  StorageId storage(Bytes bytes, StorageKind kind, std::uint8_t place, std::string_view label);

 private:
  Op launch(OpKind kind, std::string_view name) const;

  TraceEdit& edit_;
  const Pricer& pricer_;
  std::uint32_t ranks_;
  std::uint16_t stream_;
  std::uint16_t group_;
  Bytes bytes_sent_ = 0;
  std::uint64_t collectives_ = 0;
};

}  // namespace memwall
