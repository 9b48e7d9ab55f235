#include "models/workload/import/timed/captured_batches.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "models/workload/import/timed/captured_communication.h"
#include "models/workload/import/timed/joined_capture.h"
#include "models/workload/import/timed/kernel_properties.h"
#include "models/workload/import/timed/name_text.h"

namespace memwall {
namespace {

using std::string_view;

constexpr std::int64_t kMostElements = std::int64_t{1} << 42;
constexpr Bytes kMostBytes = Bytes{1} << 50;

// Walks recorded communications and launches together, by time.
class BatchSearch {
 public:
  explicit BatchSearch(const JoinedCapture& joined) : j_(joined), c_(*joined.capture), open_(c_.threads.size()) {}

  std::vector<CapturedBatch> run() && {
    std::uint32_t next = 0;
    for (std::uint32_t call = 0; call < c_.calls.size(); ++call) {
      for (; next < c_.operators.size() && c_.operators[next].start <= c_.calls[call].start; ++next) see_record(next);
      see_call(call);
    }
    std::sort(found_.begin(), found_.end(),
              [](const CapturedBatch& a, const CapturedBatch& b) { return a.device_op < b.device_op; });
    return std::move(found_);
  }

 private:
  struct Open {  // of a thread, since it last launched a collective
    std::vector<std::uint32_t> messages;
    bool mixed = false;  // with other collectives
  };

  const CapturedCommunication* record(std::uint32_t op) const {
    const std::uint32_t index = c_.operators[op].communication;
    return index == kNoIndex ? nullptr : &c_.communications[index];
  }

  void see_record(std::uint32_t op) {
    const CapturedCommunication* communication = record(op);
    if (communication == nullptr) return;
    Open& open = open_[c_.operators[op].thread];
    const string_view name = c_.text(communication->collective);
    if (name == "send" || name == "recv") {
      open.messages.push_back(op);
    } else if (name != "init" && name != "wait" && !contains(name, "coalesced")) {
      // The first batch of a group makes its communicator ("init"); "wait" is of batches before.
      open.mixed = true;
    }
  }

  void see_call(std::uint32_t index) {
    Open& open = open_[c_.calls[index].thread];
    if (open.messages.empty() && !open.mixed) return;
    const JoinedCall& call = j_.calls[index];
    const std::uint32_t kernel = collective_of(call);
    if (kernel == kNoIndex) {
      if (call.launched == 0 && contains(c_.text(c_.calls[index].name), "Launch")) leave_out(open, call.operator_index);
      return;
    }
    if (call.role != CallRole::graph && !open.mixed && stands_for_batch(kernel, call.operator_index) &&
        is_of_one_group(open.messages))
      found_.push_back({kernel, std::move(open.messages)});
    open = {};
  }

  std::uint32_t collective_of(const JoinedCall& call) const {
    for (std::uint32_t k = 0; k < call.launched; ++k)
      if (const std::uint32_t op = j_.launched[call.first_launched + k]; j_.device_ops[op].collective) return op;
    return kNoIndex;
  }

  // A call that launches by itself, and whose kernel the file lacks, is of no batch.
  void leave_out(Open& open, std::uint32_t operator_index) const {
    for (std::uint32_t i = operator_index; i != kNoIndex; i = c_.operators[i].parent) std::erase(open.messages, i);
  }

  bool stands_for_batch(std::uint32_t kernel, std::uint32_t operator_index) const {
    const CapturedCommunication* own = communication_of(c_, kernel, operator_index);
    if (own != nullptr && !contains(c_.text(own->collective), "coalesced")) return false;
    const CollectiveKind kind = collective_kind(c_.text(c_.device_ops[kernel].name), "");
    return kind == CollectiveKind::send_receive || kind == CollectiveKind::none;  // "ncclDevKernel_Generic"
  }

  bool is_of_one_group(const std::vector<std::uint32_t>& messages) const {
    return !messages.empty() && std::all_of(messages.begin(), messages.end(), [&](std::uint32_t message) {
      const CapturedCommunication &first = *record(messages.front()), &other = *record(message);
      return other.group_name == first.group_name && other.group_ranks == first.group_ranks;
    });
  }

  const JoinedCapture& j_;
  const TimedCapture& c_;
  std::vector<Open> open_;
  std::vector<CapturedBatch> found_;
};

}  // namespace

std::vector<CapturedBatch> find_batches(const JoinedCapture& joined) { return BatchSearch(joined).run(); }

const CapturedBatch* batch_of(std::span<const CapturedBatch> batches, std::uint32_t device_op) {
  const auto found =
      std::lower_bound(batches.begin(), batches.end(), device_op,
                       [](const CapturedBatch& batch, std::uint32_t op) { return batch.device_op < op; });
  return found == batches.end() || found->device_op != device_op ? nullptr : &*found;
}

bool is_sent(const TimedCapture& capture, std::uint32_t message) {
  return capture.text(capture.communications[capture.operators[message].communication].collective) == "send";
}

Bytes batch_bytes(const TimedCapture& capture, const CapturedBatch& batch) {
  Bytes sent = 0, received = 0;
  for (const std::uint32_t message : batch.messages) {
    const CapturedCommunication& c = capture.communications[capture.operators[message].communication];
    if (c.elements <= 0 || c.elements >= kMostElements) continue;
    Bytes& bytes = is_sent(capture, message) ? sent : received;
    bytes = std::min<Bytes>(bytes + c.elements * element_size(capture.text(c.message_type)), kMostBytes);
  }
  return std::max(sent, received);
}

}  // namespace memwall
