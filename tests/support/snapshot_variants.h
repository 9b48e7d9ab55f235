// The forms that memory snapshots had over the versions of PyTorch, one small example each. For tests.
#pragma once

#include <string>
#include <vector>

#include "tests/support/synthetic_snapshot.h"

namespace memwall {

struct SnapshotVariant {
  std::string name;
  Plain value;
  int protocol = 4;
};

std::vector<SnapshotVariant> snapshot_variants();

// small_snapshot() as older versions write it.
Plain snapshot_without_times();      // up to 2.1
Plain snapshot_with_history();       // 2.0: blocks without address, with a list of allocations
Plain snapshot_of_first_versions();  // 1.x: neither frames nor demands
// What is rarer.
Plain snapshot_of_expandable_segments();  // mapped, one page unmapped again
Plain snapshot_of_failed_request();       // an oom entry
Plain snapshot_of_two_devices();          // three streams, one of them the same pointer on both
Plain snapshot_with_settings();           // a text and fields that differ from it
Plain snapshot_with_pending_blocks();
Plain snapshot_with_unknown_things();  // actions, fields, tuples, floats, large dicts
Plain snapshot_that_contradicts_itself();

}  // namespace memwall
