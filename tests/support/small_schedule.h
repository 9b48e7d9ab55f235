// A program of one stream and two storages for tests of schedules, and the sentences with which schedules are refused.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "sim/error.h"
#include "sim/trace/trace_builder.h"
#include "validate/replay/schedule.h"

namespace memwall {

// The sentence with which a schedule is refused, "" if it is not.
inline std::string schedule_refusal(const Trace& trace) {
  try {
    schedule_of(trace);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

// The same of a schedule's text.
inline std::string parse_refusal(const std::string& text) {
  try {
    parse_schedule(text, "x.schedule");
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

// The text with one change; the change must be possible.
inline std::string changed(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

// One thread, one compute stream, one storage of 4096 bytes on the device and one on the host.
struct SmallSchedule {
  TraceBuilder b;
  StorageId device = kNoStorage, host = kNoStorage;

  SmallSchedule() {
    b.trace().name = "small";
    b.add_thread("main");
    b.add_stream("compute", StreamRole::compute);
    device = b.add_storage(4096, StorageKind::activation, "hbm", "device", true);
    host = b.add_storage(4096, StorageKind::activation, "host", "host", true);
    b.trace().storages[host].pinned = true;
  }

  Op op(OpKind kind, Bytes bytes = 0) {
    Op o;
    o.kind = kind;
    o.bytes = bytes;
    o.duration = microseconds(7);
    o.from = o.to = b.trace().place("hbm");
    o.name = b.trace().strings.intern("it");
    return o;
  }

  OpId copy(StorageId from, StorageId to, Bytes bytes = 4096, OpKind kind = OpKind::copy) {
    Op o = op(kind, bytes);
    o.from = b.trace().storages[from].place;
    o.to = b.trace().storages[to].place;
    return b.append(o, std::vector<Use>{{from, TraceBuilder::kLatest, Access::read}, {to, 0, Access::write}});
  }
};

}  // namespace memwall
