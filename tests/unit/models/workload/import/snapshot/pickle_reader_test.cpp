#include "models/workload/import/snapshot/pickle_reader.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "sim/error.h"
#include "tests/support/gzip.h"
#include "tests/support/pickle_writer.h"
#include "tests/support/scratch_folder.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

using namespace std::string_literals;
using Kind = PickleValue::Kind;

// Writes every value down as Python would print it.
class Printer final : public PickleContent {
 public:
  PickleValue text(std::string_view text) override { return keep(Kind::text, "'" + std::string(text) + "'"); }
  PickleValue real(double value) override { return keep(Kind::shared, std::to_string(value)); }
  PickleValue tuple(std::span<const PickleValue> items) override {
    return keep(Kind::shared, "(" + printed(items, ", ", ", ") + ")");
  }
  PickleValue dict(std::span<const PickleValue> pairs) override {
    const std::string text = "{" + printed(pairs, ": ", ", ") + "}";
    // What has the key 'one' may stand in one place only.
    return keep(text.find("'one'") != std::string::npos ? Kind::unique : Kind::shared, text);
  }
  PickleValue more_of_dict(PickleValue before, std::span<const PickleValue> pairs) override {
    return keep(Kind::shared, name(before) + "+{" + printed(pairs, ": ", ", ") + "}");
  }
  PickleValue begin_list() override { return keep(Kind::shared, "["); }
  void append(PickleValue list, std::span<const PickleValue> items) override {
    std::string& text = texts[static_cast<std::size_t>(list.number())];
    text += (text.size() > 1 && !items.empty() ? ", " : "") + printed(items, ", ", ", ");
  }
  PickleValue finish_list(PickleValue list) override { return keep(Kind::shared, name(list) + "]"); }
  PickleValue empty_list() override { return keep(Kind::shared, "[]"); }
  PickleValue empty_dict() override { return keep(Kind::shared, "{}"); }
  std::string name(PickleValue value) const override {
    switch (value.kind()) {
      case Kind::none:
        return "None";
      case Kind::boolean:
        return value.number() != 0 ? "True" : "False";
      case Kind::integer:
        return std::to_string(value.number());
      case Kind::wide:
        return "wide";
      default:
        return texts[static_cast<std::size_t>(value.number())];
    }
  }

 private:
  PickleValue keep(Kind kind, std::string text) {
    texts.push_back(std::move(text));
    return {kind, static_cast<std::int64_t>(texts.size() - 1)};
  }
  std::string printed(std::span<const PickleValue> items, const char* odd, const char* even) const {
    std::string text;
    for (std::size_t i = 0; i < items.size(); ++i) text += (i == 0 ? "" : i % 2 != 0 ? odd : even) + name(items[i]);
    return text;
  }
  std::vector<std::string> texts;
};

class PickleReader : public ::testing::Test {
 protected:
  std::string read(const std::string& pickle) {
    write_content(folder_ / "a.pickle", pickle);
    Printer printer;
    return printer.name(read_pickle(folder_ / "a.pickle", printer));
  }
  // The message of the refusal; "" = it was read.
  std::string refusal(const std::string& pickle) {
    try {
      read(pickle);
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  }
  void expect_refused(const std::string& pickle, const std::string& why) {
    const std::string message = refusal(pickle);
    EXPECT_NE(message.find(why), std::string::npos) << "'" << message << "'";
    EXPECT_NE(message.find("a.pickle, byte "), std::string::npos) << message;
    EXPECT_NE(message.find("; expected "), std::string::npos) << message;
  }
  ScratchFolder folder_;
};

TEST_F(PickleReader, ReadsPlainDataOfEveryProtocol) {
  const Plain inner = Plain::list({1, 2});
  const Plain value =
      Plain::dict({{"none", Plain()},
                   {"truth", Plain::list({true, false})},
                   {"whole", Plain::list({0, 255, 256, 65535, 65536, -1, INT64_C(1) << 40, -(INT64_C(1) << 40),
                                          (INT64_C(1) << 55) - 1, -(INT64_C(1) << 55)})},
                   {"wide", Plain::list({INT64_C(1) << 55, INT64_MIN})},
                   {"real", -0.5},
                   {"tuples", Plain::tuple({Plain::tuple({}), Plain::tuple({1}), Plain::tuple({1, 2}),
                                            Plain::tuple({1, 2, 3}), Plain::tuple({1, 2, 3, 4})})},
                   {"text", std::string(300, 'x')},
                   {"again", Plain::list({inner, inner, "text"})},
                   {"empty", Plain::list({Plain::list({}), Plain::dict({})})}});
  const std::string expected =
      "{'none': None, 'truth': [True, False], 'whole': [0, 255, 256, 65535, 65536, -1, 1099511627776, -1099511627776, "
      "36028797018963967, -36028797018963968], 'wide': [wide, wide], 'real': -0.500000, 'tuples': ((), (1), (1, 2), "
      "(1, 2, 3), (1, 2, 3, 4)), 'text': '" +
      std::string(300, 'x') + "', 'again': [[1, 2], [1, 2], 'text'], 'empty': [[], {}]}";
  for (int protocol = 2; protocol <= 5; ++protocol) EXPECT_EQ(read(pickled(value, protocol)), expected) << protocol;
}

TEST_F(PickleReader, ReadsGzip) { EXPECT_EQ(read(gzipped(pickled(Plain::list({1, "a"})))), "[1, 'a']"); }

TEST_F(PickleReader, ListsOfSeveralBatchesAreOne) {
  std::vector<Plain> items(2'001, 7);
  const std::string text = read(pickled(Plain::list(std::move(items))));
  EXPECT_EQ(std::count(text.begin(), text.end(), '7'), 2'001);
  EXPECT_EQ(std::count(text.begin(), text.end(), '['), 1);
}

TEST_F(PickleReader, DictsOfSeveralBatchesAreToldSo) {
  Plain::Pairs pairs;
  for (int i = 0; i < 1'001; ++i) pairs.emplace_back(i, 0);
  const std::string text = read(pickled(Plain::dict(std::move(pairs))));
  EXPECT_NE(text.find("}+{1000: 0}"), std::string::npos);
}

TEST_F(PickleReader, TextsLongerThanItsBuffer) {
  const std::string text(700'000, 'y');
  EXPECT_EQ(read(pickled(Plain(text))), "'" + text + "'");
}

TEST_F(PickleReader, ManyMoreBytesThanItsBuffer) {
  std::vector<Plain> items;
  for (int i = 0; i < 3'000; ++i) items.emplace_back(std::string(300 + i % 7, 'z'));
  const std::string text = read(pickled(Plain::list(std::move(items))));
  EXPECT_EQ(std::count(text.begin(), text.end(), '\''), 6'000);
}

TEST_F(PickleReader, HalvesOfSurrogatePairsBecomeReplacementCharacters) {
  EXPECT_EQ(read("\x80\x04\x8c\x05"
                 "a\xed\xb3\xbf"
                 "b."s),
            "'a\xef\xbf\xbd"
            "b'");
  EXPECT_EQ(read("\x80\x04\x8c\x04\xf0\x9f\x98\x80."s), "'\xf0\x9f\x98\x80'");
  for (const char* bad : {"\xc3\x28", "\xc0\x80", "\xff\xff", "\x80\x80"})
    expect_refused("\x80\x04\x8c\x02"s + bad + ".", "not UTF-8");
  expect_refused("\x80\x04\x8c\x04\xf4\x90\x80\x80."s, "not UTF-8");
  expect_refused("\x80\x04\x8c\x01\xe2."s, "not UTF-8");
}

TEST_F(PickleReader, NumbersOfAnyLength) {
  EXPECT_EQ(read("\x80\x02\x8a\x00."s), "0");
  EXPECT_EQ(read("\x80\x02\x8a\x02\xff\x00."s), "255");
  EXPECT_EQ(read("\x80\x02\x8a\x01\x80."s), "-128");
  EXPECT_EQ(read("\x80\x02\x8a\x09"s + std::string(9, '\x01') + "."), "wide");
  EXPECT_EQ(read("\x80\x02\x8a\xff"s + std::string(255, '\x01') + "."), "wide");
}

TEST_F(PickleReader, RefusesEveryOpcodeThatIsNotPlainData) {
  expect_refused(
      "\x80\x02"
      "cos\nsystem\n."s,
      "byte 2: found opcode GLOBAL, which would import or call code");
  expect_refused("\x80\x04\x8c\x02os\x8c\x06system\x93."s, "byte 14: found opcode STACK_GLOBAL");
  for (const auto& [byte, name] : std::map<int, std::string>{{'R', "REDUCE"},
                                                             {'b', "BUILD"},
                                                             {'i', "INST"},
                                                             {'o', "OBJ"},
                                                             {0x81, "NEWOBJ"},
                                                             {0x92, "NEWOBJ_EX"},
                                                             {0x82, "EXT1"},
                                                             {0x83, "EXT2"},
                                                             {0x84, "EXT4"},
                                                             {'P', "PERSID"},
                                                             {'Q', "BINPERSID"},
                                                             {'I', "INT"},
                                                             {'L', "LONG"},
                                                             {'F', "FLOAT"},
                                                             {'S', "STRING"},
                                                             {'T', "BINSTRING"},
                                                             {'U', "SHORT_BINSTRING"},
                                                             {'V', "UNICODE"},
                                                             {'g', "GET"},
                                                             {'p', "PUT"},
                                                             {'d', "DICT"},
                                                             {'l', "LIST"},
                                                             {'B', "BINBYTES"},
                                                             {'C', "SHORT_BINBYTES"},
                                                             {0x8e, "BINBYTES8"},
                                                             {0x96, "BYTEARRAY8"},
                                                             {0x97, "NEXT_BUFFER"},
                                                             {0x98, "READONLY_BUFFER"},
                                                             {0x8f, "EMPTY_SET"},
                                                             {0x90, "ADDITEMS"},
                                                             {0x91, "FROZENSET"},
                                                             {'0', "POP"},
                                                             {'1', "POP_MARK"},
                                                             {'2', "DUP"},
                                                             {0x8b, "LONG4"},
                                                             {0x8d, "BINUNICODE8"}})
    expect_refused("\x80\x04N"s + static_cast<char>(byte) + std::string(20, '\0'), "opcode " + name + ", which ");
}

TEST_F(PickleReader, KnowsEveryByteOrSaysThatItIsNoOpcode) {
  int refused_by_name = 0, unknown = 0;
  for (int byte = 0; byte < 256; ++byte) {
    const std::string message = refusal("\x80\x04N"s + static_cast<char>(byte));
    refused_by_name += message.find("found opcode ") != std::string::npos;
    unknown += message.find("an opcode of pickle protocols 2 to 5") != std::string::npos;
  }
  EXPECT_EQ(refused_by_name, 38);
  // 68 opcodes in Lib/pickletools.py, 30 of them known here; PROTO may not come again.
  EXPECT_EQ(unknown, 256 - 68 + 1);
}

TEST_F(PickleReader, RefusesWhatIsNoPickle) {
  EXPECT_NE(refusal("").find("less than two bytes"), std::string::npos);
  EXPECT_NE(refusal("{\"a\": 1}").find("byte 0x7b"), std::string::npos);
  EXPECT_NE(refusal("PK\x03\x04").find("archive cannot be read"), std::string::npos) << "archives are opened";
  EXPECT_NE(refusal("\x80\x01N."s).find("pickle protocol 1"), std::string::npos);
  EXPECT_NE(refusal("\x80\x06N."s).find("pickle protocol 6"), std::string::npos);
  EXPECT_NE(refusal("\x80\xff"s).find("pickle protocol 255"), std::string::npos);
}

TEST_F(PickleReader, RefusesAnyTruncation) {
  const std::string whole = pickled(Plain::dict({{"a", Plain::list({1, 70'000, 0.5, "text"})}, {"b", Plain()}}));
  for (std::size_t size = 0; size < whole.size(); ++size) EXPECT_NE(refusal(whole.substr(0, size)), "") << size;
  EXPECT_EQ(refusal(whole), "");
}

TEST_F(PickleReader, RefusesBytesAfterTheEnd) {
  expect_refused("\x80\x04N.N"s, "bytes after STOP");
  expect_refused("\x80\x04NN."s, "STOP with 2 values and 0 marks");
  expect_refused("\x80\x04(N."s, "STOP with 1 values and 1 marks");
  expect_refused("\x80\x04."s, "STOP with 0 values");
}

TEST_F(PickleReader, RefusesFramesThatCannotBe) {
  expect_refused("\x80\x04\x95\xff\xff\xff\xff\xff\xff\xff\xffN."s, "a frame of 18446744073709551615 bytes");
  expect_refused("\x80\x04\x95\x0b\x00\x00\x00\x00\x00\x00\x00\x95\x01\x00\x00\x00\x00\x00\x00\x00N."s,
                 "begins within another");
  expect_refused("\x80\x04\x95\x09\x00\x00\x00\x00\x00\x00\x00N."s, "before the end of its frame");
  EXPECT_EQ(read("\x80\x04\x95\x02\x00\x00\x00\x00\x00\x00\x00N."s), "None");
}

TEST_F(PickleReader, DeclaredLengthsTakeNoMemory) {
  expect_refused("\x80\x04X\xff\xff\xff\xff."s, "a text of 4294967295 bytes");
  expect_refused("\x80\x04X\xff\xff\xff\x00."s, "end of the file");
  expect_refused("\x80\x04\x8c\xff."s, "end of the file");
}

TEST_F(PickleReader, RefusesOpcodesWithoutTheirValues) {
  expect_refused(
      "\x80\x04"
      "e."s,
      "a mark where there is none");
  expect_refused("\x80\x04(e."s, "where there is none");
  expect_refused("\x80\x04N((e."s, "where there is none");
  expect_refused("\x80\x04]a."s, "APPEND with 1 values");
  expect_refused("\x80\x04](Na."s, "APPEND with 1 values");
  expect_refused("\x80\x04}Ns."s, "SETITEM with 2 values");
  expect_refused("\x80\x04\x85."s, "TUPLE with 0 values");
  expect_refused("\x80\x04\x94."s, "where there is none");
  expect_refused("\x80\x04N(\x94."s, "where there is none");
}

TEST_F(PickleReader, RefusesTheWrongContainer) {
  expect_refused("\x80\x04N(Ne."s, "APPENDS on None");
  expect_refused("\x80\x04}Na."s, "APPEND on a dict");
  expect_refused("\x80\x04](NNu."s, "SETITEMS on a list");
  expect_refused("\x80\x04)(NNu."s, "SETITEMS on ()");
  expect_refused("\x80\x04}(NNNu."s, "a key that has no value");
}

TEST_F(PickleReader, RefusesKeysThatAreNotPlain) {
  expect_refused("\x80\x04}]Ns."s, "[] as the key of a dict");
  expect_refused("\x80\x04}}Ns."s, "{} as the key of a dict");
  expect_refused(
      "\x80\x04}](K\x01"
      "eNs."s,
      "[1] as the key of a dict");
}

TEST_F(PickleReader, RefusesCyclesAndLateChanges) {
  // a = []; a.append(a)
  expect_refused(
      "\x80\x04]\x94h\x00"
      "a."s,
      "APPEND on a list after its use");
  expect_refused("\x80\x04}\x94K\x01h\x00s."s, "SETITEM on a dict after its use");
  // A list that grows after another holds it.
  expect_refused(
      "\x80\x04](]\x94"
      "eh\x00K\x01"
      "a."s,
      "APPEND on []");
}

TEST_F(PickleReader, FinishedValuesMayBeReferredToBeforeTheyAreHeld) {
  // [x, x] in one batch: the second x is a reference to a value that still waits for the list.
  EXPECT_EQ(read("\x80\x04](](K\x01"
                 "e\x94h\x00"
                 "e."s),
            "[[1], [1]]");
  EXPECT_EQ(read("\x80\x04](}K\x01K\x02s\x94h\x00h\x00"
                 "e."s),
            "[{1: 2}, {1: 2}, {1: 2}]");
  expect_refused(
      "\x80\x04](](K\x01"
      "e\x94h\x00h\x00K\x01"
      "a"
      "e."s,
      "APPEND on [1]");
}

TEST_F(PickleReader, WhatHasOnePlaceIsNotReferredToAgain) {
  const Plain once = Plain::dict({{"one", 1}, {"b", 2}});
  expect_refused(pickled(Plain::list({once, once})), "a second reference to {'one': 1, 'b': 2}");
  EXPECT_EQ(read(pickled(Plain::list({once, 1}))), "[{'one': 1, 'b': 2}, 1]");
}

TEST_F(PickleReader, RefusesMemoryTricks) {
  expect_refused("\x80\x04h\x00."s, "value 0 of 0 remembered");
  expect_refused("\x80\x04j\xff\xff\xff\xff."s, "value 4294967295 of 0");
  expect_refused("\x80\x04Nr\xff\xff\xff\xff."s, "remembered as number 4294967295");
  expect_refused("\x80\x04]q\x00q\x01."s, "remembered twice");
  expect_refused("\x80\x04]q\x00Nq\x00."s, "a second value remembered as number 0");
  EXPECT_EQ(read("\x80\x04K\x01q\x00K\x02q\x00h\x00\x87."s), "(1, 2, 2)");
  expect_refused("\x80\x04N"s + std::string(200'000, '\x94') + ".", "at most one per 8 bytes");
  expect_refused("\x80\x04"s + std::string(1'100'000, 'N') + ".", "more than 1048576 values");
  expect_refused("\x80\x04"s + std::string(2'000, '(') + ".", "within each other");
  EXPECT_EQ(refusal("\x80\x04"s + std::string(3'000, ']') + std::string(2'999, 'a') + "."), "");
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
