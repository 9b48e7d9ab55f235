// Is PYTORCH_ALLOC_CONF read as PyTorch reads it, and is a mistake told?
#include "sim/memory/allocator_settings.h"

#include <gtest/gtest.h>

#include "sim/error.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

std::string refusal(const std::string& text) {
  try {
    parse_allocator_settings(text);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(AllocatorSettings, NothingIsTheDefault) {
  EXPECT_EQ(parse_allocator_settings(""), AllocatorSettings{});
  EXPECT_EQ(parse_allocator_settings(" "), AllocatorSettings{});
  EXPECT_EQ(to_string(AllocatorSettings{}), "");
}

TEST(AllocatorSettings, EveryKey) {
  const AllocatorSettings s = parse_allocator_settings(
      "backend:cudaMallocAsync,\tmax_split_size_mb:256,max_non_split_rounding_mb:30,large_segment_size_mb:15,"
      "garbage_collection_threshold:0.8,per_process_memory_fraction:1.0,roundup_power2_divisions:4,"
      "expandable_segments:True,pinned_reserve_segment_size_mb:512,pinned_pool:False,");
  EXPECT_EQ(s.backend, AllocatorSettings::Backend::cuda_malloc_async);
  EXPECT_EQ(s.max_split_size, MiB(256));
  EXPECT_EQ(s.max_non_split_rounding, MiB(30));
  EXPECT_EQ(s.large_segment_size, MiB(15));
  EXPECT_EQ(s.garbage_collection_threshold, 0.8);
  EXPECT_EQ(s.per_process_memory_fraction, 1.0);
  EXPECT_EQ(s.roundup_power2_divisions[0], 4u);
  EXPECT_EQ(s.roundup_power2_divisions[15], 4u);
  EXPECT_TRUE(s.expandable_segments);
  EXPECT_EQ(s.pinned_reserve_segment_size, MiB(512));
  EXPECT_FALSE(s.pinned_pool);
  EXPECT_EQ(to_string(s),
            "backend:cudaMallocAsync,max_split_size_mb:256,max_non_split_rounding_mb:30,large_segment_size_mb:15,"
            "garbage_collection_threshold:0.8,per_process_memory_fraction:1,roundup_power2_divisions:4,"
            "expandable_segments:True,pinned_reserve_segment_size_mb:512,pinned_pool:False");
  EXPECT_EQ(parse_allocator_settings(to_string(s)), s);
}

TEST(AllocatorSettings, KeysThatChangeNothingHere) {
  EXPECT_EQ(parse_allocator_settings("release_lock_on_cudamalloc:True,pinned_use_cuda_host_register:True,"
                                     "pinned_num_register_threads:8,pinned_use_background_threads:True,"
                                     "graph_capture_record_stream_reuse:False,expandable_segments:False,"
                                     "pinned_free_catch_all:True,throw_on_cudamalloc_oom:False"),
            AllocatorSettings{});
}

TEST(AllocatorSettings, DivisionsByBoundary) {
  const auto s = parse_allocator_settings("roundup_power2_divisions:[128:8,256:16,512:1,2048:8,>:2]");
  const std::array<std::uint32_t, 16> expected = {8, 8, 8, 8, 8, 8, 8, 8, 16, 1, 0, 8, 2, 2, 2, 2};
  EXPECT_EQ(s.roundup_power2_divisions, expected);
  EXPECT_EQ(parse_allocator_settings(to_string(s)), s);
  const auto open_end = parse_allocator_settings("roundup_power2_divisions:[4:2,1:4]");
  const std::array<std::uint32_t, 16> second = {4, 2, 2};
  EXPECT_EQ(open_end.roundup_power2_divisions, second);
  EXPECT_EQ(to_string(open_end), "roundup_power2_divisions:[1:4,2:2,4:2,>:0]");
  EXPECT_EQ(parse_allocator_settings(to_string(open_end)), open_end);
  const auto highest = parse_allocator_settings("roundup_power2_divisions:[1048576:2]");
  EXPECT_EQ(highest.roundup_power2_divisions[15], 2u);
  EXPECT_EQ(parse_allocator_settings(to_string(highest)), highest);
}

TEST(AllocatorSettings, EveryPatternOfDivisionsIsWrittenAsItIsRead) {
  for (std::uint32_t seed = 0; seed < 500; ++seed) {
    AllocatorSettings s;
    for (std::size_t i = 0; i < 16; ++i)
      s.roundup_power2_divisions[i] = (seed * 2654435761u >> i & 3) == 0 ? 0 : 1u << (seed >> (i % 7) & 3);
    EXPECT_EQ(parse_allocator_settings(to_string(s)), s) << to_string(s);
  }
}

// As PyTorch: '>' never governs the lowest entry, and the first boundary holds for everything below it also behind '>'.
TEST(AllocatorSettings, TheRestOfTheDivisionsStandsAnywhere) {
  const auto divisions = [](const std::string& list) {
    return parse_allocator_settings("roundup_power2_divisions:" + list).roundup_power2_divisions;
  };
  EXPECT_EQ(divisions("[]"), AllocatorSettings{}.roundup_power2_divisions);
  EXPECT_EQ(divisions("[>:8]"), (std::array<std::uint32_t, 16>{0, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8}));
  EXPECT_EQ(divisions("[>:8,4:2]"), (std::array<std::uint32_t, 16>{2, 2, 2, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8}));
}

// Wherever it stands, it is what other sizes must reach, and the waste that a large request accepts.
TEST(AllocatorSettings, TheLargeSegmentIsReadFirst) {
  const auto s = parse_allocator_settings("max_split_size_mb:15,large_segment_size_mb:12");
  EXPECT_EQ(s.max_split_size, MiB(15));
  EXPECT_EQ(s.max_non_split_rounding, MiB(12));
  EXPECT_EQ(to_string(s), "max_split_size_mb:15,large_segment_size_mb:12");
  EXPECT_EQ(parse_allocator_settings("large_segment_size_mb:40").max_non_split_rounding, MiB(40));
  EXPECT_EQ(refusal("max_non_split_rounding_mb:30,large_segment_size_mb:40"),
            "PYTORCH_ALLOC_CONF: max_non_split_rounding_mb is '30', expected a whole number of MiB, at least 40, which "
            "is large_segment_size_mb.");
}

TEST(AllocatorSettings, ReservationsOfExpandableSegments) {
  const auto share = parse_allocator_settings("expandable_segments_reserve:0.5");
  EXPECT_EQ(share.expandable_reserve_share, 0.5);
  EXPECT_EQ(parse_allocator_settings(to_string(share)), share);
  const auto gibibytes = parse_allocator_settings("expandable_segments_reserve:0.5,expandable_segments_reserve:1.5G");
  EXPECT_EQ(gibibytes.expandable_reserve_share, 0);
  EXPECT_EQ(gibibytes.expandable_reserve, MiB(1536));
  EXPECT_EQ(to_string(gibibytes), "expandable_segments_reserve:1.5G");
  EXPECT_EQ(parse_allocator_settings(to_string(gibibytes)), gibibytes);
  EXPECT_GT(parse_allocator_settings("expandable_segments_reserve:1e200G").expandable_reserve, Bytes{1} << 59);
  EXPECT_EQ(
      refusal("expandable_segments_reserve:40GB"),
      "PYTORCH_ALLOC_CONF: expandable_segments_reserve is '40GB', expected a share of the device above 0, or GiB, "
      "such as 0.5 or 40G.");
  for (const char* bad : {"", "G", "0", "-1", "nan", "inf", "infG", "0G"})
    EXPECT_NE(refusal(std::string("expandable_segments_reserve:") + bad), "accepted") << bad;
}

TEST(AllocatorSettings, KnownToPyTorchButNotModelled) {
  EXPECT_EQ(refusal("throw_on_cudamalloc_oom:True"),
            "PYTORCH_ALLOC_CONF: throw_on_cudamalloc_oom:True is not modelled: here a request beyond the memory "
            "fraction is tried again after a release.");
  EXPECT_EQ(refusal("expandable_segments_reserve_by_class:[serving:0.25]"),
            "PYTORCH_ALLOC_CONF: expandable_segments_reserve_by_class is not modelled: which class a stream belongs to "
            "is not recorded; expandable_segments_reserve is.");
}

TEST(AllocatorSettings, UnknownKeys) {
  EXPECT_EQ(refusal("max_split_size:256"),
            "PYTORCH_ALLOC_CONF: there is no setting 'max_split_size'. Did you mean 'max_split_size_mb'?");
  EXPECT_EQ(refusal("expandable_segment:True"),
            "PYTORCH_ALLOC_CONF: there is no setting 'expandable_segment'. Did you mean 'expandable_segments'?");
  EXPECT_EQ(refusal("x:1"), "PYTORCH_ALLOC_CONF: there is no setting 'x'.");
  EXPECT_EQ(refusal(","), "PYTORCH_ALLOC_CONF: there is no setting ','.");
}

TEST(AllocatorSettings, WrongValues) {
  const auto split = [](const std::string& found) {
    return "PYTORCH_ALLOC_CONF: max_split_size_mb is " + found + ", expected a whole number of MiB, at least 20.";
  };
  EXPECT_EQ(refusal("max_split_size_mb:19"), split("'19'"));
  EXPECT_EQ(refusal("max_split_size_mb:256MB"), split("'256MB'"));
  EXPECT_EQ(refusal("max_split_size_mb:-1"), split("'-1'"));
  EXPECT_EQ(refusal("max_split_size_mb:"), split("empty"));
  EXPECT_EQ(refusal("max_non_split_rounding_mb:19").substr(0, 60),
            "PYTORCH_ALLOC_CONF: max_non_split_rounding_mb is '19', expec");
  EXPECT_EQ(refusal("expandable_segments:true"),
            "PYTORCH_ALLOC_CONF: expandable_segments is 'true', expected True or False.");
  EXPECT_EQ(refusal("backend:malloc"), "PYTORCH_ALLOC_CONF: backend is 'malloc', expected native or cudaMallocAsync.");
  EXPECT_EQ(refusal("garbage_collection_threshold:1"),
            "PYTORCH_ALLOC_CONF: garbage_collection_threshold is '1', expected a number above 0 and below 1.");
  for (const char* bad : {"0", "nan", "-0.5", "1.5", "0.5x", "inf", ""})
    EXPECT_NE(refusal(std::string("garbage_collection_threshold:") + bad), "accepted") << bad;
  EXPECT_EQ(refusal("per_process_memory_fraction:1.01"),
            "PYTORCH_ALLOC_CONF: per_process_memory_fraction is '1.01', expected a number above 0 and at most 1.");
  EXPECT_NE(refusal("pinned_num_register_threads:256"), "accepted");
  EXPECT_NE(refusal("pinned_num_register_threads:3"), "accepted");
  EXPECT_NE(refusal("large_segment_size_mb:10"), "accepted");
  EXPECT_EQ(refusal("large_segment_size_mb:11"), "accepted");
  EXPECT_EQ(refusal("max_split_size_mb:20,large_segment_size_mb:25"),
            "PYTORCH_ALLOC_CONF: max_split_size_mb is '20', expected a whole number of MiB, at least 25, which is "
            "large_segment_size_mb.");
}

TEST(AllocatorSettings, WrongForm) {
  EXPECT_EQ(refusal("max_split_size_mb"),
            "PYTORCH_ALLOC_CONF: found the end behind 'max_split_size_mb', expected ':'.");
  EXPECT_EQ(refusal("expandable_segments:True max_split_size_mb:20").substr(0, 40),
            "PYTORCH_ALLOC_CONF: expandable_segments ");
  EXPECT_EQ(refusal("expandable_segments:True;max_split_size_mb:20").substr(0, 40),
            "PYTORCH_ALLOC_CONF: expandable_segments ");
  EXPECT_EQ(refusal("expandable_segments:True:False"),
            "PYTORCH_ALLOC_CONF: found ':' behind 'expandable_segments', expected ','.");
  for (const char* bad : {"[", "[64", "[64:8", "[64:8,", "[64:3]", "[63:4]", "[x:4]", "[64:4 128:2]", "3", "0", "[:1]"})
    EXPECT_NE(refusal(std::string("roundup_power2_divisions:") + bad), "accepted") << bad;
}

// A hostile size is as good as none.
TEST(AllocatorSettings, SizesBeyondAllMachines) {
  const auto s = parse_allocator_settings("max_split_size_mb:99999999999999999999999");
  EXPECT_GT(s.max_split_size, Bytes{1} << 62);
}

TEST(AllocatorSettings, RoundsToQuantaOrDivisions) {
  AllocatorSettings s;
  EXPECT_EQ(round_request(s, 1), 512);
  EXPECT_EQ(round_request(s, 512), 512);
  EXPECT_EQ(round_request(s, 513), 1024);
  EXPECT_EQ(round_request(s, MiB(3) + 1), MiB(3) + 512);
  s.roundup_power2_divisions =
      parse_allocator_settings("roundup_power2_divisions:[256:1,512:2,1024:4,>:8]").roundup_power2_divisions;
  EXPECT_EQ(round_request(s, MiB(300) + 1), MiB(300) + 512);
  EXPECT_EQ(round_request(s, MiB(512)), MiB(512));
  EXPECT_EQ(round_request(s, MiB(512) + 1), MiB(768));
  EXPECT_EQ(round_request(s, MiB(769)), MiB(1024));
  EXPECT_EQ(round_request(s, MiB(1025)), MiB(1280));
  EXPECT_EQ(round_request(s, MiB(2049)), MiB(2304));
  EXPECT_EQ(round_request(s, GiB(65)), GiB(72));
  // Four steps from 1024 to 2048, but never less than the quantum.
  s.roundup_power2_divisions.fill(4);
  EXPECT_EQ(round_request(s, 1200), 1536);
  EXPECT_EQ(round_request(s, 2048), 2048);
  EXPECT_EQ(round_request(s, 2049), 2560);
  EXPECT_EQ(round_request(s, 1200 * 1024), 1280 * 1024);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
