// Is a file told by what is in it, also inside archives?
#include "models/workload/import/bytes/file_head.h"

#include <gtest/gtest.h>

#include "models/workload/import/bytes/archive_source.h"
#include "models/workload/import/bytes/byte_source.h"
#include "models/workload/import/bytes/file_text.h"
#include "models/workload/import/bytes/sqlite_database.h"
#include "models/workload/import/importer.h"
#include "sim/error.h"
#include "tests/support/archives.h"
#include "tests/support/gzip.h"
#include "tests/support/scratch_folder.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

using Names = std::vector<std::string>;

TEST(FirstMembers, AreThoseOfTheOutermostObject) {
  const FirstMembers m = first_members(R"({"a": {"b": 1, "c": [{"d": 2}]}, "e\"f": "g:", "h" : "i"})");
  EXPECT_EQ(m.names, (Names{"a", "e\\\"f", "h"}));
  EXPECT_TRUE(m.closed);
}

TEST(FirstMembers, EndWhereTheTextEnds) {
  const FirstMembers m = first_members(R"({"schemaVersion": 1, "traceEvents": [{"ph": "X", "na)");
  EXPECT_EQ(m.names, (Names{"schemaVersion", "traceEvents"}));
  EXPECT_FALSE(m.closed);
  EXPECT_TRUE(first_members("[1]").names.empty());
  EXPECT_TRUE(first_members(R"({"a)").names.empty());
}

class Files : public ::testing::Test {
 protected:
  std::filesystem::path file(const std::string& name, const std::string& content) {
    write_content(folder_ / name, content);
    return folder_ / name;
  }
  static std::string importer(const std::filesystem::path& path) {
    FileHead head = read_file_head(path);
    const Importer* found = find_importer(head);
    return found == nullptr ? "" : found->name;
  }
  static std::string refusal(const std::filesystem::path& path) {
    try {
      read_file_text(path);
    } catch (const InputError& error) {
      return error.what();
    }
    return "nothing was thrown";
  }
  static void expect_parts(const std::string& text, const Names& parts) {
    for (const std::string& part : parts) EXPECT_NE(text.find(part), std::string::npos) << part << " in: " << text;
  }

  ScratchFolder folder_;
};

const std::string kKineto = R"({"traceEvents": []})";

TEST_F(Files, AreRecognizedByContentNotByName) {
  EXPECT_EQ(importer(file("a.csv", "\xef\xbb\xbf\n " + kKineto)), "Kineto capture");
  EXPECT_EQ(importer(file("b", gzipped(kKineto))), "Kineto capture");
  EXPECT_EQ(importer(file("c", R"([ {"ph": "X"}])")), "Kineto capture");
  EXPECT_EQ(importer(file("d.json", "kernel_id,name\n")), "G10 workload");
  EXPECT_EQ(importer(file("e.json", "{\"format\": \"memwall-capture\", \"version\": 1}\n")), "captured step");
  EXPECT_EQ(importer(file("f.json", "\x89MWI\r\n\x1a\n")), "captured CUDA program");
  EXPECT_EQ(importer(file("g.json", "not one of them")), "");
}

TEST_F(Files, AreReadOnUntilAMemberTells) {
  std::string text = "{\"mine\": [";
  for (int i = 0; i < 40'000; ++i) text += "[1, 2],";  // far behind the head
  EXPECT_EQ(importer(file("late.json", text + "[0]], \"traceEvents\": []}")), "Kineto capture");
  EXPECT_EQ(importer(file("never.json", text + "[0]], \"other\": []}")), "");
  EXPECT_THROW(importer(file("cut.json", text)), InputError);
}

TEST_F(Files, OfFormatsEachHaveOneRecognizer) {
  for (const Importer& importer : importers()) {
    EXPECT_FALSE(importer.name.empty() || importer.sentence.empty() || importer.recognized.empty() ||
                 importer.knows.empty())
        << importer.name;
    ASSERT_NE(importer.recognizes, nullptr) << importer.name;
    ASSERT_NE(importer.import, nullptr) << importer.name;
    FileHead nothing;
    EXPECT_FALSE(importer.recognizes(nothing)) << importer.name << " takes an empty file";
  }
}

TEST_F(Files, InAnArchiveAreReadWhereItHoldsOne) {
  const std::vector<ArchiveMember> one{{"run/", "", '5'}, {"run/._a.json", "junk"}, {"run/a.json", kKineto}};
  EXPECT_EQ(read_file_text(file("a.tar", tar_of(one))), kKineto);
  EXPECT_EQ(read_file_text(file("a.tgz", gzipped(tar_of(one)))), kKineto);
  EXPECT_EQ(read_file_text(file("a.zip", zip_of({{"__MACOSX/._a.json", "junk"}, {"a.json", kKineto}}))), kKineto);
  EXPECT_EQ(read_file_text(file("b.zip", zip_of({{"a.json.gz", gzipped(kKineto)}}))), kKineto);
  EXPECT_EQ(importer(folder_ / "b.zip"), "Kineto capture");
}

TEST_F(Files, OfAnArchiveAreChosenByName) {
  const std::filesystem::path two = file("two.tgz", gzipped(tar_of({{"x/a.json", kKineto}, {"b:c.json", "{}"}})));
  expect_parts(refusal(two), {"two.tgz: the archive holds 2 files", "x/a.json, b:c.json"});
  EXPECT_EQ(read_file_text(two.string() + ":x/a.json"), kKineto);
  EXPECT_EQ(read_file_text(two.string() + ":b:c.json"), "{}");
  expect_parts(refusal(two.string() + ":x/b.json"), {"found no file 'x/b.json'", "nearest: 'x/a.json'"});
  expect_parts(refusal(file("plain.json", "{}").string() + ":x"), {"plain.json is no archive"});
  EXPECT_EQ(split_archive_path(two.string() + ":x/a.json").file, two);
  EXPECT_EQ(split_archive_path(two).member, "");
}

TEST_F(Files, OfArchivesThatHoldNoCaptureSayWhatTheyHold) {
  const std::string inner = gzipped(tar_of({{"a.json", kKineto}}));
  const auto hint = [&](const std::string& name, const std::string& content) {
    return unsupported_file_hint(read_file_head(file(name, content)));
  };
  expect_parts(hint("nested.tar", tar_of({{"inner.tgz", inner}})), {"holds another archive", "unpack the outer one"});
  expect_parts(hint("nested.zip", zip_of({{"inner.zip", zip_of({{"a.json", kKineto}})}})), {"holds another archive"});
  expect_parts(hint("empty.tar", std::string(10240, '\0')), {"a tar archive without files"});
  EXPECT_EQ(hint("alone.tgz", inner), "");
  const std::string database("SQLite format 3\0 and so on", 26);
  const std::filesystem::path tar = file("database.tar", tar_of({{"a.sqlite", database}}));
  for (const std::string& path : {tar.string(), tar.string() + ":a.sqlite", file("a.gz", gzipped(database)).string()}) {
    try {
      SqliteDatabase(path, "export of Nsight Systems");
      FAIL() << path;
    } catch (const InputError& error) {
      expect_parts(error.what(), {"lies in an archive or is compressed", "expected it unpacked"});
    }
  }
}

TEST_F(Files, OfHostileArchivesEndInASentence) {
  expect_parts(refusal(file("links.tar", tar_of({{"a", "", '2', "/etc/passwd"}, {"b", "", '1', "a"}}))),
               {"links.tar", "holds no file"});
  const std::string tar = gzipped(tar_of({{"a.json", std::string(5000, 'x')}}));
  expect_parts(refusal(file("cut.tgz", tar.substr(0, tar.size() / 2))), {"cut.tgz", "truncated"});
  const std::string zip = zip_of({{"a.json", kKineto}});
  expect_parts(refusal(file("cut.zip", zip.substr(0, 40))), {"cut.zip"});
  std::string changed = zip;
  changed[zip.find("traceEvents")] = 'T';
  expect_parts(refusal(file("sum.zip", changed)), {"sum.zip", "the archive cannot be read"});
  // 80,000 bytes that unpack to 80 MB.
  expect_parts(refusal(file("bomb.gz", gzipped(std::string(80 << 20, ' ')))), {"bomb.gz", "times as much"});
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
