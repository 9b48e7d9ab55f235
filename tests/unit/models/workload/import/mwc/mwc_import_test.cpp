// Does each record of a captured step become what it says, and each mistake a sentence with its line?
#include "models/workload/import/mwc/mwc_import.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "sim/error.h"
#include "sim/trace/trace_check.h"
#include "tests/support/gzip.h"
#include "tests/support/scratch_folder.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

const std::string kFake = R"({"format":"memwall-capture","version":1,"name":"small","mode":"fake","device":"cuda"})";
// Storage 0 is a weight from before; 1 and 2 are made by the step; 3 and 4 are on the host.
const std::vector<std::string> kStorages{
    R"({"storage":0,"bytes":64,"kind":"parameter","place":"hbm","label":"w","preexisting":true})",
    R"({"storage":1,"bytes":32,"kind":"activation","place":"hbm","label":"mm"})",
    R"({"storage":2,"bytes":32,"kind":"gradient","place":"hbm","label":"w.grad"})",
    R"({"storage":3,"bytes":32,"kind":"input","place":"host","label":"pageable","preexisting":true})",
    R"({"storage":4,"bytes":32,"kind":"unknown","place":"host_pinned","label":"pinned","preexisting":true})"};

class MwcImport : public ::testing::Test {
 protected:
  // Header, the storages (lines 2 to 6), then `records` from line 7 on.
  ImportedMwc read(const std::vector<std::string>& records, const std::string& header = kFake) {
    std::string text = header + "\n";
    for (const std::string& line : kStorages) text += line + "\n";
    for (const std::string& line : records) text += line + "\n";
    return read_text(text);
  }
  ImportedMwc read_text(const std::string& text) {
    write_content(folder_ / "a.mwc", text);
    return read_mwc(folder_ / "a.mwc");
  }
  Trace trace(const std::vector<std::string>& records, const std::string& header = kFake) {
    Trace t = read(records, header).trace;
    EXPECT_EQ(check(t), std::vector<std::string>());
    return t;
  }
  std::string refusal(const std::string& text) {
    try {
      read_text(text);
    } catch (const InputError& error) {
      const std::string sentence = error.what();
      EXPECT_NE(sentence.find("a.mwc, line "), std::string::npos) << sentence;
      EXPECT_EQ(sentence.back(), '.') << sentence;
      return sentence.substr(sentence.find("a.mwc, line ") + 7);
    }
    return "";
  }
  std::string refusal(const std::vector<std::string>& records) {
    std::string text = kFake + "\n";
    for (const std::string& line : kStorages) text += line + "\n";
    for (const std::string& line : records) text += line + "\n";
    return refusal(text);
  }
  void refuses(const std::vector<std::string>& records, const std::string& sentence) {
    const std::string found = refusal(records);
    EXPECT_NE(found.find(sentence), std::string::npos) << "expected: " << sentence << "\nfound: " << found;
  }
  static bool notes_say(const Trace& t, const std::string& part) {
    for (const std::string& note : t.notes)
      if (note.find(part) != std::string::npos) return true;
    return false;
  }
  static const Op& only(const Trace& t, OpKind kind) {
    const Op* found = nullptr;
    for (const Op& op : t.ops)
      if (op.kind == kind) {
        EXPECT_EQ(found, nullptr);
        found = &op;
      }
    EXPECT_NE(found, nullptr);
    return *found;
  }

  ScratchFolder folder_;
};

TEST_F(MwcImport, AnOperatorBecomesAKernelWithItsUses) {
  const Trace t = trace(
      {R"({"step":"one"})", R"({"alloc":1})",
       R"({"op":"aten::mm","id":0,"module":"layers.0","phase":"forward","reads":[0,0],"writes":[1],"flops":2e3,"bytes":96,)"
       R"("class":"gemm","dtype":"bf16","inputs":[[[8,8],"bf16",0]],"outputs":[],"saves":[0],"kernels":1})",
       R"({"free":1})"});
  EXPECT_EQ(t.name, "small");
  ASSERT_EQ(t.steps.size(), 1U);
  EXPECT_EQ(t.steps[0].name, "one");
  EXPECT_EQ(t.steps[0].last, t.ops.size());
  EXPECT_EQ(t.ops[t.steps[0].first].kind, OpKind::mark);
  const Op& mm = only(t, OpKind::kernel);
  EXPECT_EQ(t.strings[mm.name], "aten::mm");
  EXPECT_EQ(t.strings[mm.operator_name], "aten::mm");
  EXPECT_EQ(t.strings[mm.module], "layers.0");
  EXPECT_EQ(mm.phase, Phase::forward);
  EXPECT_EQ(mm.origin, Origin::modelled);
  EXPECT_EQ(mm.duration, Duration{});
  EXPECT_EQ(mm.flops, 2000);
  EXPECT_EQ(mm.bytes, 96);
  EXPECT_EQ(mm.operator_class, OperatorClass::gemm);
  EXPECT_EQ(mm.data_type, DataType::bf16);
  const auto uses = t.uses_of(mm);
  ASSERT_EQ(uses.size(), 2U) << "a storage that is read twice is read";
  EXPECT_EQ(uses[0].access, Access::read);
  EXPECT_EQ(uses[0].version, 0U);
  EXPECT_EQ(uses[1].access, Access::write);
  EXPECT_EQ(uses[1].version, 1U);
  EXPECT_EQ(t.strings[only(t, OpKind::alloc).module], "layers.0") << "an alloc belongs to the op that follows";
  EXPECT_EQ(only(t, OpKind::free).phase, Phase::forward);
  EXPECT_FALSE(t.knowledge.timing);
  EXPECT_TRUE(t.knowledge.allocations && t.knowledge.dataflow && t.knowledge.modules && t.knowledge.shapes);
}

TEST_F(MwcImport, StoragesKeepKindPlaceAndPinning) {
  const Trace t = trace({R"({"op":"a","reads":[0]})"});
  ASSERT_EQ(t.storages.size(), 5U);
  EXPECT_EQ(t.storages[2].kind, StorageKind::gradient);
  EXPECT_EQ(t.places[t.storages[3].place], "host");
  EXPECT_FALSE(t.storages[3].pinned);
  EXPECT_EQ(t.places[t.storages[4].place], "host");
  EXPECT_TRUE(t.storages[4].pinned);
  EXPECT_TRUE(t.storages[0].preexisting);
  EXPECT_EQ(t.strings[t.storages[2].label], "w.grad");
}

TEST_F(MwcImport, AFileWithoutStepsIsOneStep) {
  const Trace t = trace({R"({"op":"a","reads":[0]})"});
  ASSERT_EQ(t.steps.size(), 1U);
  EXPECT_EQ(t.steps[0].first, 0U);
  EXPECT_EQ(t.steps[0].last, 2U);
}

TEST_F(MwcImport, StepsEndWhereTheNextBegins) {
  const Trace t = trace({R"({"op":"before","reads":[0]})", R"({"step":"one"})", R"({"op":"a","reads":[0]})",
                         R"({"step":"two"})", R"({"op":"b","reads":[0]})"});
  ASSERT_EQ(t.steps.size(), 2U);
  EXPECT_EQ(t.steps[0].first, 2U);
  EXPECT_EQ(t.steps[0].last, 4U);
  EXPECT_EQ(t.steps[1].first, 4U);
  EXPECT_EQ(t.steps[1].last, 6U);
}

TEST_F(MwcImport, AnInPlaceOperatorReadsWhatWasThere) {
  const Trace t = trace({R"({"alloc":1})", R"({"op":"aten::zero_","reads":[1],"writes":[1]})",
                         R"({"op":"aten::add_","reads":[1,0],"writes":[1]})"});
  const auto fresh = t.uses_of(t.ops[2]), again = t.uses_of(t.ops[3]);
  ASSERT_EQ(fresh.size(), 1U) << "nothing was there to read";
  EXPECT_EQ(fresh[0].access, Access::write);
  ASSERT_EQ(again.size(), 3U);
  EXPECT_EQ(again[0].version, 1U);
  EXPECT_EQ(again[2].version, 2U);
  EXPECT_TRUE(notes_say(t, "First writers, 1 of "));
}

// Autograd saves logsumexp before attention's output: hooks are shown them in that order.
TEST_F(MwcImport, WhatIsSavedStandsInTheOrderOfSaving) {
  const Trace t = trace(
      {R"({"alloc":1})", R"({"alloc":2})", R"({"op":"aten::attention","reads":[0],"writes":[1,2],"saves":[2,0,1]})"});
  const auto uses = t.uses_of(t.ops.back());
  ASSERT_EQ(uses.size(), 3u);
  EXPECT_EQ(uses[0].storage, 0u) << "what is read stands first";
  EXPECT_EQ(uses[1].storage, 2u);
  EXPECT_EQ(uses[2].storage, 1u);
  EXPECT_TRUE(uses[0].saved && uses[1].saved && uses[2].saved);
}

TEST_F(MwcImport, WhatAutogradKeepsIsMarkedOnTheUse) {
  const Trace t = trace({R"({"alloc":1})", R"({"op":"aten::mm","reads":[0],"writes":[1],"saves":[0]})",
                         R"({"op":"aten::relu_","reads":[1],"writes":[1],"saves":[1]})",
                         R"({"op":"aten::batch_norm","reads":[0,1],"writes":[0],"saves":[0]})",
                         R"({"op":"aten::mul","reads":[1],"writes":[0],"saves":[]})"});
  std::vector<std::vector<bool>> saved;
  for (const Op& op : t.ops) {
    if (op.kind != OpKind::kernel) continue;
    saved.emplace_back();
    for (const Use& use : t.uses_of(op)) saved.back().push_back(use.saved);
  }
  // The weight that mm reads; relu_'s result, not what it overwrites; running statistics as they were read.
  EXPECT_EQ(saved,
            (std::vector<std::vector<bool>>{{true, false}, {false, true}, {true, false, false}, {false, false}}));
}

TEST_F(MwcImport, WhatIsKeptThatTheOpDoesNotUseIsCountedAndLeftOut) {
  const ImportedMwc read_back =
      read({R"({"alloc":1})", R"({"op":"aten::mm","reads":[0],"writes":[1],"saves":[0,2,99]})"});
  const auto found = std::find_if(read_back.decisions.begin(), read_back.decisions.end(),
                                  [](const Decision& d) { return d.subject == "saved tensors left out"; });
  ASSERT_NE(found, read_back.decisions.end());
  EXPECT_EQ(found->covered, 2u);
  EXPECT_EQ(found->of, 3u);
}

TEST_F(MwcImport, AFreeWhileOtherStreamsUseTheMemoryIsCounted) {
  const std::vector<std::string> records{R"({"alloc":1})", R"({"op":"aten::mm","reads":[0],"writes":[1]})",
                                         R"({"free":1,"streams":[0,7]})", R"({"alloc":2})",
                                         R"({"free":2,"streams":[0]})"};
  const ImportedMwc read_back = read(records);
  EXPECT_EQ(check(read_back.trace), std::vector<std::string>());
  const auto found = std::find_if(read_back.decisions.begin(), read_back.decisions.end(),
                                  [](const Decision& d) { return d.subject == "memory of several streams"; });
  ASSERT_NE(found, read_back.decisions.end());
  EXPECT_EQ(found->covered, 1u);  // storage 2 is used by its own stream only
  EXPECT_EQ(found->of, 2u);
  EXPECT_EQ(read_back.trace.streams.size(), 1U);  // a stream that does nothing else is none of the program's
  const std::vector<std::string> without{records[0], records[1], R"({"free":1})", records[3], R"({"free":2})"};
  const ImportedMwc plain = read(without);
  EXPECT_TRUE(std::none_of(plain.decisions.begin(), plain.decisions.end(),
                           [](const Decision& d) { return d.subject == "memory of several streams"; }));
  EXPECT_EQ(refusal({records[0], R"({"free":1,"streams":[70000]})"}),
            "line 8: \"streams\" is '70000'; expected a whole number from 0 to 65535.");
  EXPECT_EQ(refusal({records[0], R"({"free":1,"streams":3})"}),
            "line 8: \"streams\" is '3'; expected a list of stream numbers.");
}

TEST_F(MwcImport, SeveralKernelsAreOneOpAndNoneIsNone) {
  const Trace t = trace({R"({"op":"foreach","reads":[0],"writes":[0],"kernels":3})",
                         R"({"op":"view","reads":[0],"writes":[0],"kernels":0})"});
  EXPECT_EQ(t.uses_of(only(t, OpKind::kernel)).size(), 2U);
  EXPECT_EQ(t.ops.size(), 2U);
  EXPECT_TRUE(notes_say(t, "Operators of several kernels, 1 of 1: They stay one op, which knows how many it launches; 3 kernels in all."));
  EXPECT_TRUE(notes_say(t, "Operators as ops, 1 of 2"));
}

TEST_F(MwcImport, AnOperatorOnHostMemoryIsHostWork) {
  const Trace t = trace({R"({"op":"aten::add_","reads":[3,0],"writes":[3],"kernels":0,"bytes":96})"});
  const Op& work = only(t, OpKind::host_work);
  EXPECT_EQ(work.bytes, 96);
  ASSERT_EQ(t.uses_of(work).size(), 2U) << "of host memory only";
  EXPECT_EQ(t.uses_of(work)[0].storage, 3U);
}

TEST_F(MwcImport, CopiesSayWhereAndHow) {
  const Trace t = trace(
      {R"({"alloc":1})", R"({"copy":32,"from":"host","to":"hbm","reads":[3],"writes":[1],"blocking":true})",
       R"({"copy":32,"from":"hbm","to":"host_pinned","reads":[1],"writes":[4],"stream":7,"name":"aten::copy_"})"});
  const Op &in = t.ops[2], &out = t.ops[3];
  EXPECT_EQ(t.places[in.from], "host");
  EXPECT_EQ(t.places[in.to], "hbm");
  EXPECT_TRUE(in.pageable);
  EXPECT_EQ(in.wait_for, WaitFor::own_op);
  EXPECT_EQ(in.bytes, 32);
  EXPECT_FALSE(out.pageable);
  EXPECT_EQ(t.strings[out.operator_name], "aten::copy_");
  EXPECT_EQ(out.wait_for, WaitFor::nothing);
  ASSERT_EQ(t.streams.size(), 2U);
  EXPECT_EQ(out.stream, 1U);
  EXPECT_EQ(t.streams[1].name, "stream 7");
  EXPECT_EQ(t.streams[1].role, StreamRole::copy);
}

// A list of Python that becomes an index: the program fills host memory without an operator.
TEST_F(MwcImport, HostMemoryIsCopiedThatNoOperatorHasWritten) {
  const Trace t = trace({R"({"storage":5,"bytes":8,"kind":"activation","place":"host","label":"aten::lift_fresh"})",
                         R"({"alloc":5})", R"({"alloc":1})",
                         R"({"copy":8,"from":"host","to":"hbm","reads":[5],"writes":[1],"blocking":true})",
                         R"({"free":5})", R"({"op":"a","reads":[1]})"});
  const Op& copy = only(t, OpKind::copy);
  EXPECT_EQ(copy.bytes, 8);
  ASSERT_EQ(t.uses_of(copy).size(), 1U) << "what it writes";
  EXPECT_EQ(t.uses_of(copy)[0].access, Access::write);
}

TEST_F(MwcImport, CollectivesCountWhatOneRankSends) {
  const auto sent = [&](const std::string& kind, int ranks) {
    return only(trace({R"({"collective":")" + kind + R"(","bytes":800,"group":"dp","reads":[0],"writes":[0],"ranks":)" +
                       std::to_string(ranks) + "}"}),
                OpKind::collective)
        .bytes;
  };
  // nccl-tests, doc/PERFORMANCE.md: 2 (N-1)/N of the buffer for an all-reduce, (N-1)/N for its halves.
  EXPECT_EQ(sent("all_reduce", 8), 1400);
  EXPECT_EQ(sent("reduce_scatter", 8), 700);
  EXPECT_EQ(sent("all_gather", 4), 600);
  EXPECT_EQ(sent("all_to_all", 2), 400);
  EXPECT_EQ(sent("broadcast", 8), 800);
  EXPECT_EQ(sent("barrier", 8), 0);
  EXPECT_EQ(sent("all_reduce", 1), 0);
  const Trace t = trace({R"({"collective":"all_reduce","bytes":8,"ranks":2,"group":"tp"})",
                         R"({"collective":"all_reduce","bytes":8,"ranks":8,"group":"dp"})"});
  EXPECT_EQ(t.ranks, 8U);
  EXPECT_EQ(t.ops[1].group, 0U);
  EXPECT_EQ(t.ops[2].group, 1U);
  EXPECT_EQ(t.streams[0].role, StreamRole::communication);
  EXPECT_TRUE(notes_say(t, "tp of 2 ranks, dp of 8 ranks"));
}

TEST_F(MwcImport, EventsAndWaits) {
  const Trace t = trace({R"({"event":"wait","number":9,"stream":1})", R"({"event":"record","number":4,"stream":0})",
                         R"({"event":"wait","number":4,"stream":1})", R"({"synchronize":"event","number":4})",
                         R"({"synchronize":"own_op","stream":1})", R"({"synchronize":"device"})"});
  EXPECT_EQ(t.event_count, 1U);
  ASSERT_EQ(t.ops.size(), 6U);
  EXPECT_EQ(t.ops[1].kind, OpKind::event_record);
  EXPECT_EQ(t.ops[2].kind, OpKind::event_wait);
  EXPECT_EQ(t.ops[2].stream, 1U);
  EXPECT_EQ(t.ops[3].wait_for, WaitFor::event);
  EXPECT_EQ(t.ops[3].target, 0U);
  EXPECT_EQ(t.ops[4].wait_for, WaitFor::stream);
  EXPECT_EQ(t.ops[5].wait_for, WaitFor::device);
  EXPECT_TRUE(notes_say(t, "Waits left out, 1 of "));
}

TEST_F(MwcImport, AnotherThreadGoesOnWhereTheOneBeforeEnded) {
  const Trace t = trace({R"({"op":"a","reads":[0]})", R"({"op":"b","reads":[0],"thread":5,"phase":"backward"})",
                         R"({"op":"c","reads":[0]})"});
  ASSERT_EQ(t.ops.size(), 6U);
  ASSERT_EQ(t.threads.size(), 2U);
  EXPECT_EQ(t.threads[1].name, "thread 5");
  EXPECT_EQ(t.ops[2].kind, OpKind::hand_over);
  EXPECT_EQ(t.ops[2].target, 1U);
  EXPECT_EQ(t.ops[2].thread, 1U);
  EXPECT_TRUE(t.ops[2].inferred);
  EXPECT_EQ(t.ops[4].kind, OpKind::hand_over);
  EXPECT_EQ(t.ops[4].target, 3U);
  EXPECT_EQ(t.ops[4].thread, 0U);
}

TEST_F(MwcImport, RecomputationNamesItsOriginal) {
  const Trace t = trace({R"({"op":"a","id":7,"reads":[0],"phase":"forward"})",
                         R"({"op":"a","id":8,"reads":[0],"phase":"recompute","forward":7})",
                         R"({"op":"b","id":9,"reads":[0],"phase":"backward","forward":7})"});
  EXPECT_EQ(t.ops[2].source, 1U);
  EXPECT_EQ(t.ops[3].source, 1U);
  EXPECT_TRUE(repeats(t.ops[2]) && !repeats(t.ops[3]));
  const Trace without = trace({R"({"op":"a","reads":[0],"phase":"recompute"})"});
  EXPECT_EQ(without.ops[1].phase, Phase::backward);
  EXPECT_TRUE(notes_say(without, "Recomputing operators without original, 1 of 1"));
}

TEST_F(MwcImport, ARealCaptureHasTimes) {
  const ImportedMwc c =
      read({R"({"alloc":1,"host_us":1.5,"gap_us":2})",
            R"({"op":"a","writes":[1],"duration_us":12.345678,"host_us":4,"gap_us":0.000001})",
            R"({"op":"b","reads":[1],"bytes":4})"},
           R"({"format":"memwall-capture","version":1,"mode":"real","gpu":"NVIDIA X","gpu_bytes":9})");
  const Trace& t = c.trace;
  EXPECT_TRUE(c.measured && t.knowledge.timing);
  EXPECT_EQ(c.gpu, "NVIDIA X");
  EXPECT_EQ(c.gpu_bytes, 9);
  EXPECT_EQ(t.name, "a") << "of the file";
  EXPECT_EQ(t.ops[1].host_cost, nanoseconds(1500));
  EXPECT_EQ(t.ops[1].host_gap, microseconds(2));
  EXPECT_EQ(t.ops[2].duration, picoseconds(12'345'678));
  EXPECT_EQ(t.ops[2].host_gap, picoseconds(1));
  EXPECT_EQ(t.ops[2].origin, Origin::measured);
  EXPECT_EQ(t.ops[3].origin, Origin::modelled);
  EXPECT_TRUE(notes_say(t, "Durations, 1 of 2"));
}

TEST_F(MwcImport, UnknownKeysAndNullsAreSkippedBlankLinesToo) {
  const Trace t = trace({"", R"({"op":"a","reads":[0],"module":null,"new":{"a":[1,{"b":"]}"}]},"newer":"x"})", "  "});
  EXPECT_EQ(t.ops.size(), 2U);
}

TEST_F(MwcImport, GzipIsToldByContent) {
  std::string text = kFake + "\n" + kStorages[0] + "\n" + R"({"op":"a","reads":[0]})";  // no end of line
  EXPECT_EQ(read_text(gzipped(text)).trace.ops.size(), 2U);
}

TEST_F(MwcImport, LongLinesGrowTheBufferAndNumbersNeedNoOrder) {
  std::string list = "0";
  for (int i = 0; i < 400'000; ++i) list += ",0";
  const Trace t =
      trace({R"({"op":"a","reads":[)" + list + "]}", R"({"storage":2147483647,"bytes":1,"preexisting":true})",
             R"({"op":"b","reads":[2147483647]})"});
  EXPECT_EQ(t.uses_of(t.ops[1]).size(), 1U);
  EXPECT_EQ(t.uses_of(t.ops[2])[0].storage, 5U);
}

TEST_F(MwcImport, WhatALifeGetsWrongIsNamedWithItsLine) {
  refuses({R"({"op":"a","reads":[1]})"},
          "line 7: the record reads storage 1 'mm', which has not been allocated before.");
  refuses({R"({"alloc":1})", R"({"op":"a","reads":[1]})"},
          "line 8: the record reads storage 1 'mm', which nobody has written before.");
  refuses({R"({"alloc":1})", R"({"op":"a","writes":[1]})", R"({"free":1})", R"({"op":"b","reads":[1]})"},
          "line 10: the record reads storage 1 'mm', which was freed in line 9.");
  refuses({R"({"free":0})", R"({"op":"b","writes":[0]})"},
          "line 8: the record writes storage 0 'w', which was freed in line 7.");
  refuses({R"({"alloc":1})", R"({"alloc":1})"}, "line 8: storage 1 'mm' is allocated, but it lives already.");
  refuses({R"({"alloc":0})"}, "line 7: storage 0 'w' is allocated, but it lives already (preexisting).");
  refuses({R"({"alloc":1})", R"({"free":1})", R"({"alloc":1})"},
          "line 9: storage 1 'mm' is allocated again after it was freed in line 8");
  refuses({R"({"free":1})"}, "line 7: the record frees storage 1 'mm', which has not been allocated before.");
  refuses({R"({"op":"a","reads":[17]})"}, "line 7: storage 17 is unknown");
  refuses({kStorages[0]}, "line 7: storage 0 is described a second time");
  refuses({R"({"op":"a","writes":[3]})"},
          "line 7: a kernel writes storage 3 'pageable', which is in pageable host memory");
}

TEST_F(MwcImport, WhatARecordGetsWrongIsNamedWithItsLine) {
  refuses({R"({"opp":"a"})"}, "line 7: the record is of an unknown kind; expected one of the keys storage, alloc");
  refuses({R"({"op":"a","step":"b"})"}, "line 7: the record is both \"op\" and \"step\"");
  refuses({R"({"storage":9})"}, "line 7: storage 9 has no \"bytes\"");
  refuses({R"({"storage":9,"bytes":-1})"},
          "line 7: \"bytes\" is '-1'; expected a whole number from 0 to 1125899906842624.");
  refuses({R"({"storage":9,"bytes":"many"})"}, "\"bytes\" is '\"many\"'");
  refuses({R"({"storage":4294967296,"bytes":1})"}, "\"storage\" is '4294967296'");
  refuses({R"({"storage":9,"bytes":1,"kind":"activatoin"})"},
          "\"kind\" is 'activatoin' (nearest: \"activation\"); expected one of unknown, parameter");
  refuses({R"({"storage":9,"bytes":1,"place":"nvme"})"},
          "\"place\" is 'nvme'; expected one of hbm, host, host_pinned.");
  refuses({R"({"op":"a","reads":3})"}, "\"reads\" is '3'; expected a list of storage numbers.");
  refuses({R"({"op":"a","flops":1e30})"}, "\"flops\" is '1e30'; expected a number from 0 to 1e+18.");
  refuses({R"({"op":7})"}, "\"op\" is '7'; expected text.");
  refuses({R"({"op":"a","id":1})", R"({"op":"b","id":1})"}, "line 8: op 1 is recorded a second time.");
  refuses({R"({"op":"a","phase":"recompute","forward":3})"},
          "the record repeats op 3, which launches nothing or is not before it.");
  refuses({R"({"copy":1,"from":"hbm","to":"hbm"})"}, "the copy goes from hbm to hbm");
  refuses({R"({"copy":1})"}, "the copy does not say \"from\" where");
  refuses({R"({"collective":"all_reduce","bytes":1})"}, "how many \"ranks\"");
  refuses({R"({"collective":"all_reduce","ranks":2})"}, "the collective has no \"bytes\"");
  refuses({R"({"collective":"all_reduce","bytes":1,"ranks":2,"group":"g"})",
           R"({"collective":"all_reduce","bytes":1,"ranks":3,"group":"g"})"},
          "line 8: group 'g' has 3 ranks here and 2 before.");
  refuses({R"({"event":"record"})"}, "the event has no \"number\"");
  refuses({R"({"synchronize":"stram"})"}, "\"synchronize\" is 'stram' (nearest: \"stream\")");
  refuses({R"({"op":"a")"}, "line 7: found JSON that cannot be parsed");
  refuses({R"({"op":"a"} {"op":"b"})"}, "line 7: found more behind the object");
  refuses({R"({"op":"a","module":nul})"}, "line 7: found JSON that cannot be parsed");
  refuses({"[1]"}, "line 7: found JSON that cannot be parsed");
  refuses(std::vector<std::string>{}, "the file ends without a record of what the host did");
}

TEST_F(MwcImport, SumsThatNobodyCouldAddUpAreRefused) {
  std::vector<std::string> records;
  for (int i = 0; i < 20; ++i) records.push_back(R"({"op":"a","flops":1e18})");
  refuses(records, "line 17: the ops up to here have 1.1e+19 FLOPs");
}

TEST_F(MwcImport, HeadersAreChecked) {
  EXPECT_EQ(refusal(std::string("")), "line 1: the file is empty; expected the header of a captured step.");
  EXPECT_NE(refusal(std::string(R"({"format":"x"})")).find("\"format\" is not"), std::string::npos);
  EXPECT_NE(refusal(std::string(R"({"format":"memwall-capture","mode":"fake"})")).find("no \"version\""),
            std::string::npos);
  EXPECT_NE(refusal(std::string(R"({"format":"memwall-capture","version":2,"mode":"fake"})")).find("A newer memwall"),
            std::string::npos);
  EXPECT_NE(refusal(std::string(R"({"format":"memwall-capture","version":1})")).find("no \"mode\""), std::string::npos);
  EXPECT_NE(refusal(std::string(R"({"format":"memwall-capture","version":1,"mode":"reel"})")).find("nearest: \"real\""),
            std::string::npos);
}

// The program's last reference to storage 1 ends behind mul, an op of a view among it; its backward is of exp's node.
TEST_F(MwcImport, ReferencesEndAndNodesBeginWhereTheFileSaysIt) {
  const Trace t =
      trace({R"({"alloc":1})", R"({"op":"aten::exp","id":3,"phase":"forward","reads":[0],"writes":[1],"saves":[1]})",
             R"({"op":"aten::mul","phase":"forward","reads":[1],"writes":[0]})",
             R"({"op":"aten::view","kernels":0,"phase":"forward","reads":[],"writes":[],"unreferenced":[1]})",
             R"({"op":"aten::mul","phase":"backward","reads":[1],"writes":[0],"forward":3})",
             R"({"op":"aten::add","phase":"backward","reads":[0],"writes":[0]})"});
  std::vector<OpId> kernels;
  for (OpId id = 0; id < t.ops.size(); ++id)
    if (t.ops[id].kind == OpKind::kernel) kernels.push_back(id);
  ASSERT_EQ(kernels.size(), 4u);
  EXPECT_EQ(t.storages[1].last_referenced, kernels[1]);
  EXPECT_EQ(t.storages[0].last_referenced, kNoOp);
  EXPECT_EQ(t.ops[kernels[2]].source, kernels[0]);
  EXPECT_FALSE(repeats(t.ops[kernels[2]]));
  EXPECT_EQ(t.ops[kernels[3]].source, kNoOp);
  refuses({R"({"alloc":1})", R"({"op":"aten::mm","reads":[0],"writes":[1],"unreferenced":[77]})"},
          "storage 77 is unknown");
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
