// Does the Kineto reader cut, unify and refuse as its headers say?
#include <gtest/gtest.h>

#include <fstream>

#include "models/workload/import/bytes/json_source.h"
#include "models/workload/import/kineto/kineto_number.h"
#include "models/workload/import/kineto/kineto_reader.h"
#include "models/workload/import/timed/timed_capture.h"
#include "sim/error.h"
#include "tests/support/gzip.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/small_capture.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

std::string replaced(std::string text, const std::string& what, const std::string& with) {
  const std::size_t at = text.find(what);
  EXPECT_NE(at, std::string::npos) << what;
  if (at != std::string::npos) text.replace(at, what.size(), with);
  return text;
}

std::string with_every(const std::string& text, const std::string& what, const std::string& with) {
  std::string result;
  std::size_t done = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, done)) {
    result += text.substr(done, at - done) + with;
    done = at + what.size();
  }
  return result + text.substr(done);
}

class KinetoReader : public ::testing::Test {
 protected:
  std::filesystem::path write(const std::string& text, const std::string& name = "capture.json") {
    write_content(folder_ / name, text);
    return folder_ / name;
  }
  TimedCapture read(const std::string& text) { return read_kineto(write(text)); }
  // The message with which reading ends.
  std::string refusal(const std::string& text) {
    try {
      read(text);
    } catch (const InputError& error) {
      return error.what();
    }
    return "accepted";
  }
  ScratchFolder folder_;
};

void expect_part(const std::string& message, const std::string& part) {
  EXPECT_NE(message.find(part), std::string::npos) << message << "\nlacks: " << part;
}

TEST_F(KinetoReader, UnifiesWhatTheFileSays) {
  const TimedCapture c = read(small_capture());
  EXPECT_EQ(c.operators.size(), 7u);
  EXPECT_EQ(c.calls.size(), 7u);
  EXPECT_EQ(c.device_ops.size(), 5u);
  EXPECT_EQ(c.memory.size(), 4u);
  ASSERT_EQ(c.threads.size(), 3u);
  EXPECT_EQ(c.rank, 3);
  EXPECT_EQ(c.world_size, 8);
  ASSERT_EQ(c.devices.size(), 1u);
  EXPECT_EQ(c.devices[0].name, "NVIDIA H100 80GB HBM3");
  EXPECT_EQ(c.devices[0].memory, 85018279936);
  EXPECT_EQ(c.first_event_ns, 1669783687001000000);
  EXPECT_EQ(c.calls[0].start, microseconds(110));
  EXPECT_EQ(c.calls[0].duration, microseconds(10));
  EXPECT_EQ(c.text(c.device_ops[0].name), "sgemm_\"quoted\"<float, 4>");
  EXPECT_EQ(c.launches[c.device_ops[0].launch].threads_per_block, 256u);
  EXPECT_EQ(c.device_ops[0].stream, 7);
  EXPECT_EQ(c.text(c.operators[2].input_dims), "[[16,32],[32,8]]");
  EXPECT_EQ(c.memory[0].address, 4096u);
  EXPECT_EQ(c.memory[1].bytes, -1024);
  EXPECT_EQ(c.events_by_category.at("kernel"), 4u);
  EXPECT_EQ(c.events_by_category.at("ac2g"), 2u);
  // aten::mm lies inside the step.
  EXPECT_EQ(c.operators[c.operators[2].parent].name, c.operators[0].name);
}

TEST_F(KinetoReader, NamesOf2021MeanTheSame) {
  std::string text = small_capture();
  const std::pair<const char*, const char*> old[] = {
      {"\"cpu_op\"", "\"Operator\""},   {"\"cuda_runtime\"", "\"Runtime\""}, {"\"kernel\"", "\"Kernel\""},
      {"\"gpu_memcpy\"", "\"Memcpy\""}, {"\"tid\":100", "\"tid\":\"100\""},  {"\"tid\":7,", "\"tid\":\"stream 7\","}};
  for (const auto& [now, then] : old) text = with_every(text, now, then);
  const TimedCapture c = read(text);
  EXPECT_EQ(c.operators.size(), 7u);
  EXPECT_EQ(c.calls.size(), 7u);
  EXPECT_EQ(c.device_ops.size(), 5u);
  EXPECT_EQ(c.threads.size(), 3u);
  EXPECT_EQ(c.threads[0].id, 100);
}

TEST_F(KinetoReader, GzipIsToldByContent) {
  const std::string packed = gzipped(small_capture());
  EXPECT_EQ(read_kineto(write(packed, "a.json")).calls.size(), 7u);
  // Two members in a row are one file.
  const std::string text = small_capture();
  const std::string half = gzipped(text.substr(0, 700)) + gzipped(text.substr(700));
  EXPECT_EQ(read_kineto(write(half, "b.gz")).calls.size(), 7u);
}

TEST_F(KinetoReader, TruncatedGzipIsRefused) {
  const std::string packed = gzipped(small_capture());
  for (const std::size_t keep : {packed.size() - 1, packed.size() / 2, std::size_t{12}}) {
    const std::string message = refusal(packed.substr(0, keep));
    expect_part(message, "capture.json");
    expect_part(message, "which ends in the middle of the data");
    expect_part(message, "expected a whole gzip stream");
  }
  std::string damaged = packed;
  damaged[packed.size() / 2] = static_cast<char>(damaged[packed.size() / 2] ^ 0x55);
  EXPECT_NE(refusal(damaged), "accepted");
}

TEST_F(KinetoReader, EveryCutIsRefused) {
  const std::string text = small_capture();
  for (std::size_t keep = 0; keep + 1 < text.size(); keep += 13) {
    const std::string message = refusal(text.substr(0, keep));
    EXPECT_NE(message, "accepted") << keep;
    expect_part(message, "byte");
    expect_part(message, "expected");
  }
}

TEST_F(KinetoReader, SentencesNameFieldFoundAndExpected) {
  const std::string text = small_capture();
  std::string message = refusal(replaced(text, "\"dur\":200", "\"dur\":-200"));
  expect_part(message, "capture.json, byte ");
  expect_part(message, "\"dur\" is -200; expected a duration of 0 or more");
  message = refusal(replaced(text, "\"bytes\":4", "\"bytes\":-4"));
  expect_part(message, "\"bytes\" is -4; expected a number of bytes, 0 or more");
  message = refusal(replaced(text, "\"ts\":1669783687001123,\"dur\":200", "\"dur\":200"));
  expect_part(message, "\"ts\" is missing; expected a time in microseconds");
  message = refusal(replaced(text, "\"Bytes\":1024,", ""));
  expect_part(message, "\"Bytes\" is missing");
  message = refusal(replaced(text, "\"Total Allocated\":2048", "\"Total Allocated\":-1"));
  expect_part(message, "\"Total Allocated\" is -1");
  message = refusal(replaced(text, "\"dur\":200", "\"dur\":\"long\""));
  expect_part(message, "\"dur\" is \"long\"; expected a time in microseconds");
}

TEST_F(KinetoReader, TheByteIsThatOfTheEvent) {
  const std::string text = replaced(small_capture(), "\"dur\":200", "\"dur\":-200");
  const std::size_t event = text.rfind('{', text.find("sgemm"));
  expect_part(refusal(text), "byte " + std::to_string(event) + " of the JSON");
}

TEST_F(KinetoReader, OtherDocumentsAreRefused) {
  expect_part(refusal(""), "found the end of the file");
  expect_part(refusal("hello"), "found 'h'; expected JSON that begins with '{' or '['");
  expect_part(refusal("{\"schemaVersion\":1}"), "\"traceEvents\"");
  expect_part(refusal(small_capture() + "x"), "expected the end of the file");
  EXPECT_NE(refusal("{\"traceEvents\":[1]}"), "accepted");
  EXPECT_NE(refusal("{\"traceEvents\":[{\"ph\":\"X\" \"cat\":\"kernel\"}]}"), "accepted");
  EXPECT_THROW(read_kineto(folder_ / "absent.json"), InputError);
  EXPECT_THROW(read_kineto(folder_.path()), InputError);
}

TEST_F(KinetoReader, EventsAcrossBufferEndsAreWhole) {
  // Names of many lengths, with quotes and backslashes, over several buffers of 1 MiB.
  std::string text = "{\"traceEvents\":[";
  const int count = 9000;
  for (int i = 0; i < count; ++i) {
    std::string name = "kkk";
    for (int part = 0; part < 30 + i % 47; ++part) name += part % 2 == 0 ? "\\\"kkkkk" : "\\\\kkkkk";
    text += std::string(i > 0 ? ",\n" : "") + "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"" + name +
            "{[\",\"pid\":1,\"tid\":1,\"ts\":" + std::to_string(i) + ",\"dur\":1,\"args\":{\"x\":[{},[\"]\"]]}}";
  }
  text += "]}";
  ASSERT_GT(text.size(), std::size_t{3} << 20);
  const TimedCapture c = read(text);
  ASSERT_EQ(c.operators.size(), static_cast<std::size_t>(count));
  EXPECT_EQ(c.operators[8999].start, microseconds(8999));
  EXPECT_EQ(c.text(c.operators[1].name).substr(0, 12), "kkk\"kkkkk\\kk");
}

TEST(KinetoNumber, MicrosecondsKeepTheirNanoseconds) {
  const std::pair<const char*, std::int64_t> cases[] = {{"1669783687464249", 1669783687464249000},
                                                        {"1669783687464249.251", 1669783687464249251},
                                                        {"0.0005", 1},
                                                        {"0.0004", 0},
                                                        {"12.3456", 12346},
                                                        {"-3.5", -3500},
                                                        {"1.5e3", 1500000},
                                                        {"0", 0},
                                                        {"000000000000000000000001.5", 1500},
                                                        {"4203669603454.206", 4203669603454206},
                                                        {"1e-9", 0},
                                                        {"25E-4", 3}};
  for (const auto& [text, expected] : cases) {
    std::int64_t value = -1;
    EXPECT_TRUE(parse_microseconds(text, value)) << text;
    EXPECT_EQ(value, expected) << text;
  }
  for (const char* text : {"", "x", "1e400", "99999999999999999999", "1.2.3", "\"5\"", "nan", "-", "."}) {
    std::int64_t value = 0;
    EXPECT_FALSE(parse_microseconds(text, value)) << text;
  }
}

TEST(KinetoNumber, IntegersInAllTheirClothes) {
  const std::pair<const char*, std::int64_t> cases[] = {
      {"7", 7},   {"\"7\"", 7}, {"\"stream 7\"", 7},         {"\"0x10\"", 16},
      {"-5", -5}, {"3.0", 3},   {"18446744073709551615", -1}};
  for (const auto& [text, expected] : cases) {
    std::int64_t value = 0;
    EXPECT_TRUE(parse_integer(text, value)) << text;
    EXPECT_EQ(value, expected) << text;
  }
  for (const char* text : {"", "\"\"", "\"PyTorch Profiler\"", "null", "1x", "99999999999999999999999"}) {
    std::int64_t value = 0;
    EXPECT_FALSE(parse_integer(text, value)) << text;
  }
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
