// Collectives that bring the slices of parameters together for a while (sharding), and which of the storages that they
// fill hold the same content: what forward has gathered and given back, backward gathers again.
#pragma once

#include <map>
#include <set>
#include <utility>
#include <vector>

#include "policies/trace/dataflow.h"
#include "sim/trace/trace.h"

namespace memwall {

// Does the op gather parameters that live throughout into storages that do not? An all-gather does, an all-reduce of
// sharding's own that adds up slices (DeepSpeed's use_all_reduce_for_fetch_params), or a kernel that
// copies them out of the communication buffer that one has filled (FSDP2); such a kernel names the slices, too.
bool gathers_parameters(const Trace& trace, const Op& op);
// Is the op sharding's own, with nothing but parameters and communication buffers?
bool serves_parameters(const Trace& trace, const Op& op);

// A snapshot, as Dataflow is.
class ParameterGathers {
 public:
  // `flow` is of `trace`. Both must outlive it.
  ParameterGathers(const Trace& trace, const Dataflow& flow);

  // The gather that fills the storage; kNoOp: none does.
  OpId gather_of(StorageId storage) const {
    return number_of_.empty() || number_of_[storage] == kNone ? kNoOp : gathers_[number_of_[storage]].op;
  }
  // Has the storage been gathered before op `at`, and is it not given back by then?
  bool lives(StorageId storage, OpId at) const;
  // What holds the content of a gathered storage at op `at`: itself, else another that lives then, else the one that is
  // gathered next. kNoStorage: there is none.
  StorageId stand_in(StorageId storage, OpId at) const;
  // What a reader at op `at` reads for the storage: what stands in for a gathered one, any other itself.
  StorageId read_at(StorageId storage, OpId at) const {
    const StorageId other = stand_in(storage, at);
    return other == kNoStorage ? storage : other;
  }
  // The storages that a gather fills. REQUIRES: gathers_parameters(op).
  const std::vector<StorageId>& filled_by(OpId gather) const;
  Bytes bytes_of(OpId gather) const;
  // The first op from `from` on that reads what the gather fills; kNoOp: none does.
  OpId first_reader(OpId gather, OpId from) const;
  // Bytes of parameters that ops [begin, end) read: everything that a gather fills, once for each run of readers that
  // no reader of another gather interrupts.
  Bytes read_between(OpId begin, OpId end) const;
  // The last gather before op `at`; kNoOp: there is none.
  OpId last_before(OpId at) const;
  // The streams that read what is gathered.
  const std::set<std::uint16_t>& reading_streams() const { return reading_streams_; }
  // Do gathers leave while other streams still compute what stands before the first reader (prefetch)?
  bool run_ahead() const { return run_ahead_; }

 private:
  static constexpr std::uint32_t kNone = 0xffffffff;
  struct Gather {
    OpId op = kNoOp;
    std::vector<StorageId> filled;
    Bytes bytes = 0;
  };
  struct ReadingRun {
    OpId begin = kNoOp;
    Bytes before = 0, bytes = 0;  // of the runs before; of this one
  };
  using Content = std::pair<StorageId, std::uint32_t>;  // a slice, and its version

  void collect(OpId id);
  void survey_readers();
  const Gather& numbered(OpId gather) const;

  const Trace& t_;
  const Dataflow& flow_;
  std::vector<Gather> gathers_;                     // ascending
  std::vector<std::uint32_t> number_of_;            // by storage; empty where nothing is gathered
  std::vector<Content> content_of_;                 // likewise
  std::map<Content, std::vector<StorageId>> same_;  // in the order of gathers
  std::vector<ReadingRun> runs_;                    // ascending
  std::set<std::uint16_t> reading_streams_;
  bool run_ahead_ = false;
};

}  // namespace memwall
