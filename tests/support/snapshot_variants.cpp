#include "tests/support/snapshot_variants.h"

namespace memwall {
namespace {

constexpr std::uint64_t kSegment = 0x7f1000000000;
constexpr std::int64_t kMiB = 1 << 20;

// Every trace entry of all devices.
template <class Change>
void each_entry(Plain& snapshot, Change change) {
  for (Plain& trace : snapshot["device_traces"].items())
    for (Plain& entry : trace.items()) change(entry);
}

template <class Change>
void each_block(Plain& snapshot, Change change) {
  for (Plain& segment : snapshot["segments"].items())
    for (Plain& block : segment["blocks"].items()) change(block);
}

}  // namespace

Plain snapshot_without_times() {
  Plain snapshot = small_snapshot();
  each_entry(snapshot, [](Plain& entry) {
    for (const char* key : {"time_us", "compile_context", "user_metadata"}) entry.remove(key);
  });
  snapshot.remove("external_annotations");
  return snapshot;
}

Plain snapshot_with_history() {
  Plain snapshot = snapshot_without_times();
  each_block(snapshot, [](Plain& block) {
    std::vector<Plain> history;
    if (block["state"].text() != "inactive")
      for (const int older : {0, 1})
        history.push_back(Plain::dict({{"addr", block["address"]},
                                       {"real_size", block["requested_size"].integer() - 8 * older},
                                       {"frames", older != 0 ? Plain::list({}) : block["frames"]}}));
    block.set("history", Plain::list(std::move(history)));
    for (const char* key : {"address", "requested_size", "frames"}) block.remove(key);
  });
  for (Plain& segment : snapshot["segments"].items())
    for (const char* key : {"requested_size", "segment_pool_id", "is_expandable", "frames"}) segment.remove(key);
  return snapshot;
}

Plain snapshot_of_first_versions() {
  Plain snapshot = snapshot_with_history();
  each_block(snapshot, [](Plain& block) { block.remove("history"); });
  each_entry(snapshot, [](Plain& entry) { entry.remove("frames"); });
  for (Plain& segment : snapshot["segments"].items()) segment.remove("stream");
  snapshot.remove("allocator_settings");
  return snapshot;
}

Plain snapshot_of_expandable_segments() {
  const Plain trace =
      Plain::list({snapshot_entry("segment_map", kSegment, 20 * kMiB), snapshot_entry("alloc", kSegment, 15 * kMiB),
                   snapshot_entry("segment_map", kSegment + 20 * kMiB, 20 * kMiB),
                   snapshot_entry("alloc", kSegment + 15 * kMiB, 20 * kMiB),
                   snapshot_entry("free_requested", kSegment + 15 * kMiB, 20 * kMiB),
                   snapshot_entry("free_completed", kSegment + 15 * kMiB, 20 * kMiB),
                   snapshot_entry("segment_unmap", kSegment + 20 * kMiB, 20 * kMiB)});
  Plain segment = snapshot_segment(kSegment, {snapshot_block(kSegment, 15 * kMiB, 15 * kMiB),
                                              snapshot_block(kSegment + 15 * kMiB, 5 * kMiB, 20 * kMiB, "inactive")});
  segment.set("is_expandable", true);
  Plain settings = snapshot_settings("expandable_segments:True");
  settings.set("expandable_segments", true);
  return snapshot_of({segment}, {trace}, settings);
}

Plain snapshot_of_failed_request() {
  Plain snapshot = small_snapshot();
  Plain oom = snapshot_entry("oom", 0, 64 * kMiB);
  oom.remove("addr");
  oom.set("device_free", 3 * kMiB);
  snapshot["device_traces"].items()[0].items().push_back(oom);
  return snapshot;
}

Plain snapshot_of_two_devices() {
  const std::int64_t one = 0x55d0c0ffee00, two = 0x55d0c0ffff00;
  const std::uint64_t other = kSegment + 64 * kMiB;
  const auto trace = [&](std::uint64_t address, std::int64_t stream) {
    return Plain::list(
        {snapshot_entry("segment_alloc", address, 2 * kMiB, Plain::list({}), 1'700'000'000'000'000, stream),
         snapshot_entry("alloc", address, 512, Plain::list({}), 1'700'000'000'000'001, stream)});
  };
  const auto segment = [&](std::uint64_t address, int device, std::int64_t stream) {
    return snapshot_segment(
        address, {snapshot_block(address, 512, 512), snapshot_block(address + 512, 2 * kMiB - 512, 0, "inactive")},
        device, stream);
  };
  Plain moved = segment(kSegment + 2 * kMiB, 2, one);
  moved.set("segment_pool_id", Plain::tuple({0, 3}));
  return snapshot_of({segment(other, 2, two), moved, segment(kSegment, 0, one)},
                     {trace(kSegment, one), Plain::list({}), trace(other, two)});
}

Plain snapshot_with_settings() {
  Plain settings =
      snapshot_settings("max_split_size_mb:256,garbage_collection_threshold:0.5,roundup_power2_divisions:4");
  settings.set("max_split_size", 128 * kMiB);
  settings.set("garbage_collection_threshold", 0.75);
  settings["roundup_power2_divisions"].set("256", 8);
  settings["roundup_power2_divisions"].set("1", 2);
  Plain snapshot = small_snapshot();
  snapshot.set("allocator_settings", settings);
  snapshot.set("external_annotations",
               Plain::list({snapshot_annotation("START", "ProfilerStep#3", 1'700'000'000'000'001),
                            snapshot_annotation("END", "ProfilerStep#3", 1'700'000'000'000'004)}));
  return snapshot;
}

Plain snapshot_with_pending_blocks() {
  return snapshot_of({snapshot_segment(kSegment, {snapshot_block(kSegment, 1024, 1000, "active_pending_free"),
                                                  snapshot_block(kSegment + 1024, 1024, 900, "active_awaiting_free"),
                                                  snapshot_block(kSegment + 2048, 2 * kMiB - 2048, 0, "inactive")})},
                     {Plain::list({snapshot_entry("free_requested", kSegment, 1000)})});
}

Plain snapshot_with_unknown_things() {
  Plain snapshot = small_snapshot();
  std::vector<Plain>& trace = snapshot["device_traces"].items()[0].items();
  Plain marker = snapshot_entry("snapshot", 0, 0);
  marker.set("frames", Plain::list({}));
  trace.push_back(marker);
  trace.push_back(snapshot_entry("user_defined", 0, 0));
  trace.push_back(snapshot_entry("teleport", 0, 0));
  trace.back().set("destination", Plain::dict({{"action", "alloc"}, {"addr", 1}, {"size", 1}}));
  trace.back().set("pool_id", Plain::tuple({1, 0}));
  Plain::Pairs many;
  for (int i = 0; i < 1'203; ++i) many.emplace_back(i, Plain::list({i, 0.5, Plain()}));
  snapshot.set("statistics", Plain::dict(std::move(many)));
  snapshot.set("version", Plain::tuple({2, 9, 0, "a"}));
  snapshot["segments"].items()[0].set("owner", Plain::tuple({}));
  return snapshot;
}

Plain snapshot_that_contradicts_itself() {
  Plain snapshot = small_snapshot();
  std::vector<Plain>& segments = snapshot["segments"].items();
  segments[0].set("active_size", 77);
  segments[1].set("total_size", 14 * kMiB);
  segments.push_back(snapshot_segment(static_cast<std::uint64_t>(segments[1]["address"].integer()) + 13 * kMiB,
                                      {snapshot_block(0x1000, 4096, 5000)}));
  snapshot["device_traces"].items()[0].items()[3].set("time_us", 5);
  return snapshot;
}

std::vector<SnapshotVariant> snapshot_variants() {
  std::vector<SnapshotVariant> variants = {
      {"from_empty", small_snapshot()},
      {"protocol_2", small_snapshot(), 2},
      {"protocol_3", small_snapshot(), 3},
      {"protocol_5", small_snapshot(), 5},
      {"without_times", snapshot_without_times()},
      {"with_history", snapshot_with_history(), 2},
      {"first_versions", snapshot_of_first_versions(), 3},
      {"expandable_segments", snapshot_of_expandable_segments()},
      {"failed_request", snapshot_of_failed_request()},
      {"two_devices", snapshot_of_two_devices()},
      {"settings", snapshot_with_settings()},
      {"pending_blocks", snapshot_with_pending_blocks()},
      {"unknown_things", snapshot_with_unknown_things()},
      {"contradictions", snapshot_that_contradicts_itself()},
  };
  variants.push_back({"segments_alone", small_snapshot()["segments"]});
  variants.push_back({"nothing", snapshot_of({}, {})});
  return variants;
}

}  // namespace memwall
