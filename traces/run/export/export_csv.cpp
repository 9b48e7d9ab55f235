#include "traces/run/export/export_csv.h"

#include <fmt/format.h>

#include <iterator>
#include <ostream>
#include <string>
#include <string_view>

#include "sim/csv.h"
#include "traces/run/export/export_lanes.h"

namespace memwall {
namespace {

constexpr std::string_view kColumns =
    "op,kind,name,operator,module,phase,origin,thread,stream,host_start_us,host_end_us,device_start_us,device_end_us,"
    "host_reason,host_cause,device_reason,device_cause,return_reason,return_cause,bytes,flops,from,to,storage\n";

std::string instant(Time time) { return time == kNever ? "" : exact_microseconds(time); }
std::string cause(OpId id) { return id == kNoOp ? "" : std::to_string(id); }

class CsvWriter {
 public:
  explicit CsvWriter(const Run& run) : run_(run), trace_(run.trace) {}

  void append(OpId id, std::string& out) const {
    const Op& op = trace_.ops[id];
    const OpRecord& r = run_.result.records[id];
    const bool calls = !op.placed && !op.graph_member;
    const bool works = runs_on_device(op.kind);
    const bool copies = op.kind == OpKind::copy || op.kind == OpKind::storage_io;
    const bool lives = op.kind == OpKind::alloc || op.kind == OpKind::free;
    const auto text = [&](StringId string) { return csv_cell(trace_.strings[string]); };
    fmt::format_to(std::back_inserter(out), "{},{},{},{},{},{},{},{},{},", id, to_string(op.kind), text(op.name),
                   text(op.operator_name), text(op.module), to_string(op.phase), to_string(op.origin),
                   calls && op.thread < trace_.threads.size() ? csv_cell(trace_.threads[op.thread].name) : "",
                   works && op.stream < trace_.streams.size() ? csv_cell(trace_.streams[op.stream].name) : "");
    fmt::format_to(std::back_inserter(out), "{},{},{},{},{},{},{},{},{},{},", calls ? instant(r.host_start) : "",
                   calls ? instant(r.host_end) : "", works ? instant(r.start) : "", works ? instant(r.end) : "",
                   calls ? to_string(r.host_reason) : "", cause(r.host_cause), works ? to_string(r.device_reason) : "",
                   cause(r.device_cause), r.host_end_waited ? to_string(r.host_end_reason) : "",
                   cause(r.host_end_cause));
    fmt::format_to(std::back_inserter(out), "{},{},{},{},{}\n", op.bytes, op.flops,
                   copies ? csv_cell(trace_.places[op.from]) : "", copies ? csv_cell(trace_.places[op.to]) : "",
                   lives ? std::to_string(op.target) : "");
  }

 private:
  const Run& run_;
  const Trace& trace_;
};

}  // namespace

void export_csv(const Run& run, std::ostream& out) {
  const CsvWriter writer(run);
  std::string text(kColumns);
  for (OpId id = 0; id < run.trace->ops.size(); ++id) {
    writer.append(id, text);
    if (text.size() > kFlushBytes) {
      out.write(text.data(), static_cast<std::streamsize>(text.size()));
      text.clear();
    }
  }
  out.write(text.data(), static_cast<std::streamsize>(text.size()));
}

}  // namespace memwall
