// PNG, PDF and SVG from the command line and from the screen: equal bytes, and errors with their exit codes.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <QImage>

#include <chrono>
#include <filesystem>

#include "gui/drawing/run_figures.h"
#include "gui/view/window/export_figure.h"
#include "sim/error.h"
#include "tests/support/command.h"
#include "tests/support/gpt_trace.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/synthetic_snapshot.h"
#include "tests/support/test_machine.h"
#include "traces/figure/figure_stream.h"
#include "traces/figure/palette.h"
#include "traces/run/file/run_file.h"
#include "traces/run/run_recorder.h"

namespace memwall::gui {
namespace MEMWALL_TEST_FILE {

namespace fs = std::filesystem;

class RenderPng : public ::testing::Test {
 protected:
  void SetUp() override {
    GptShape shape;
    shape.steps = 3;
    shape.flops_per_second = 1e9;
    shape.launch_cost = std::chrono::microseconds(2);
    run_ = simulate_and_record(gpt_step(shape), test_machine(), {});
    write_run(run_, folder_ / "run.h5");
  }
  // Without a screen, and without a variable that says so.
  CommandOutcome memwall(const std::string& arguments, const std::string& program = MEMWALL_PROGRAM) {
    return run_command("unset QT_QPA_PLATFORM DISPLAY WAYLAND_DISPLAY; '" + program + "' " + arguments, folder_.path());
  }
  void renders(const std::string& arguments) {
    const CommandOutcome o = memwall("render " + arguments);
    EXPECT_EQ(o.code, 0) << arguments << "\n" << o.err;
    EXPECT_EQ(o.out + o.err, "") << arguments;
  }
  void refuses(const std::string& arguments, int code, const std::string& sentence,
               const std::string& program = MEMWALL_PROGRAM) {
    const CommandOutcome o = memwall(arguments, program);
    EXPECT_EQ(o.code, code) << arguments << "\n" << o.err;
    EXPECT_NE(o.err.find(sentence), std::string::npos) << arguments << "\nexpected: " << sentence << "\n" << o.err;
    for (const auto& entry : fs::directory_iterator(folder_.path()))
      EXPECT_EQ(entry.path().filename().string().find("partial"), std::string::npos) << entry.path();
  }
  std::string bytes(const char* name) const { return content_of(folder_ / name); }

  const ScratchFolder folder_;
  memwall::Run run_;
};

TEST_F(RenderPng, TheScreenAndTheCommandLineWriteTheSameBytes) {
  for (const char* view : {"timeline", "memory", "links", "tiers"})
    for (const char* ending : {".svg", ".png", ".pdf"}) {
      const bool ranged = std::string(view) != "tiers";
      renders(std::string("run.h5 --view ") + view + (ranged ? " --range step:2" : "") + " -o one" + ending);
      RunFigureRequest request{.view = view, .tier = "hbm", .range = {}, .lanes = {}};
      if (ranged) request.range = parse_range("step:2", run_);
      export_figure(run_figure({&run_}, {"run"}, request), folder_ / (std::string("screen") + ending));
      EXPECT_GT(bytes((std::string("one") + ending).c_str()).size(), 1000u);
      EXPECT_TRUE(bytes((std::string("one") + ending).c_str()) == bytes((std::string("screen") + ending).c_str()))
          << view << ending;
    }
}

TEST_F(RenderPng, TwiceTheSameCommandGivesTheSameBytes) {
  for (const char* ending : {".svg", ".png", ".pdf"}) {
    renders(std::string("run.h5 -o a") + ending);
    if (std::string(ending) == ".pdf") run_command("sleep 1.1", folder_.path());  // a date has seconds
    renders(std::string("run.h5 -o b") + ending);
    EXPECT_TRUE(bytes((std::string("a") + ending).c_str()) == bytes((std::string("b") + ending).c_str())) << ending;
  }
}

TEST_F(RenderPng, APdfIsTheSameInEveryTimeZoneAndItsPlacesAreRight) {
  for (const char* zone : {"UTC0", "Asia/Tokyo", "JST-9"}) {
    const CommandOutcome o =
        run_command("unset QT_QPA_PLATFORM DISPLAY WAYLAND_DISPLAY; TZ=" + std::string(zone) +
                        " '" MEMWALL_PROGRAM "' render run.h5 -o " + std::string(zone).substr(0, 3) + ".pdf",
                    folder_.path());
    EXPECT_EQ(o.code, 0) << o.err;
  }
  const std::string pdf = bytes("UTC.pdf");
  EXPECT_TRUE(pdf == bytes("Asi.pdf") && pdf == bytes("JST.pdf")) << "a date is as long as its time zone makes it";
  const std::size_t table = std::stoul(pdf.substr(pdf.rfind("startxref\n") + 10));
  ASSERT_EQ(pdf.substr(table, 5), "xref\n");
  std::size_t at = pdf.find('\n', table + 5) + 1;
  for (int object = 0; pdf[at + 10] == ' '; ++object, at += 20)
    if (object > 0) {
      EXPECT_TRUE(pdf.substr(std::stoul(pdf.substr(at, 10))).starts_with(std::to_string(object) + " 0 obj")) << object;
    }
}

TEST_F(RenderPng, ScaleIsPixelsPerPoint) {
  renders("run.h5 --view tiers -o one.png --scale 1");
  renders("run.h5 --view tiers -o two.png");
  renders("run.h5 --view tiers -o three.png --scale 3.5");
  const QImage one((folder_ / "one.png").c_str()), two((folder_ / "two.png").c_str()),
      three((folder_ / "three.png").c_str());
  EXPECT_EQ(one.width(), 960);
  EXPECT_EQ(two.width(), 1920);
  EXPECT_EQ(three.width(), 3360);
  EXPECT_EQ(two.dotsPerMeterX(), 5669);  // 144 per inch: on paper as wide as the SVG
}

TEST_F(RenderPng, TextsOfAPdfAreText) {
  renders("run.h5 --view memory -o memory.pdf");
  EXPECT_TRUE(bytes("memory.pdf").starts_with("%PDF-"));
  EXPECT_EQ(bytes("memory.pdf").find("CreationDate"), std::string::npos);
  const CommandOutcome o = run_command("command -v pdftotext >/dev/null && pdftotext memory.pdf -", folder_.path());
  if (o.code != 0) GTEST_SKIP() << "pdftotext is missing";
  EXPECT_NE(o.out.find("Memory of hbm"), std::string::npos) << o.out;
}

TEST_F(RenderPng, LanesAreGivenOneByOne) {
  renders("run.h5 --lane autograd --lane main -o lanes.svg");
  const std::string svg = bytes("lanes.svg");
  EXPECT_LT(svg.find(">autograd</text>"), svg.find(">main</text>"));
  EXPECT_EQ(svg.find(">stream "), std::string::npos);
  renders("--lane main run.h5 -o main.svg");  // a file after it is no lane
}

TEST_F(RenderPng, SnapshotsTakeTheSameWay) {
  write_content(folder_ / "small.pickle", pickled(small_snapshot()));
  for (const char* view : {"memory", "blocks", "segments"}) {
    renders(std::string("small.pickle --view ") + view + " -o picture.png --scale 1");
    EXPECT_EQ(QImage((folder_ / "picture.png").c_str()).width(), 960) << view;
  }
}

TEST_F(RenderPng, MistakesEndWithTheirCodeAndLeaveNothing) {
  refuses("render run.h5 -o no/where.png", 2, "no/where.png: the file cannot be written");
  refuses("render run.h5 -o run.jpeg", 2, "written as .svg, .png or .pdf");
  refuses("render run.h5 -o run.svg --scale 2", 2, "pixels a point of a .png");
  refuses("render run.h5 -o run.png --scale 99", 2, "expected pixels per point, 0.1 to 20");
  refuses("render run.h5 --view tiers --range step:1 -o t.png", 2, "tells of whole runs");
  refuses("render run.h5 --range step:9 -o t.png", 2, "the run has 3 steps");
  refuses("render absent.h5 -o t.png", 6, "absent.h5");
  EXPECT_FALSE(fs::exists(folder_ / "t.png"));
}

TEST_F(RenderPng, WithoutTheViewerItIsSaid) {
  const std::string alone = (folder_ / "alone" / "memwall").string();
  fs::create_directories(folder_ / "alone");
  fs::copy_file(MEMWALL_PROGRAM, alone);
  refuses("render run.h5 -o p.png", 2, "a picture as .png needs memwall-viewer", alone);
  refuses("view run.h5", 2, "needs memwall-viewer", alone);
  EXPECT_EQ(memwall("render run.h5 -o p.svg", alone).code, 0);
  fs::create_symlink(MEMWALL_VIEWER, folder_ / "alone" / "memwall-viewer");
  EXPECT_EQ(memwall("render run.h5 -o p.png", alone).code, 0);
  // A viewer that dies is told, too.
  fs::remove(folder_ / "alone" / "memwall-viewer");
  write_content(folder_ / "alone" / "memwall-viewer", "#!/bin/sh\nkill -9 $$\n");
  ::chmod((folder_ / "alone" / "memwall-viewer").c_str(), 0755);
  refuses("render run.h5 -o q.png", 1, "ended by signal 9", alone);
}

TEST_F(RenderPng, ViewSaysWhereThereIsNoScreen) {
  refuses("view run.h5", 2, "there is no screen");
  refuses("view a b c", 2, "3 were given");
}

TEST_F(RenderPng, TheViewerTakesNothingButFigures) {
  write_content(folder_ / "figure", figure_bytes(Figure{100, 50, "", {}}));
  write_content(folder_ / "cut", figure_bytes(Figure{100, 50, "", {}}).substr(0, 30));
  write_content(folder_ / "huge", figure_bytes(Figure{1e6, 1e6, "", {}}));
  const auto viewer = [&](const std::string& rest) {
    return run_command("'" MEMWALL_VIEWER "' --export " + rest, folder_.path());
  };
  EXPECT_EQ(viewer("f.png < figure").code, 0);
  EXPECT_EQ(QImage((folder_ / "f.png").c_str()).size(), QSize(200, 100));
  for (const char* wrong : {"c.png < cut", "c.png < run.h5", "c.png < /dev/null"}) EXPECT_EQ(viewer(wrong).code, 6);
  for (const char* wrong : {"c.png --scale < figure", "c.png --scale x < figure", "c.gif < figure", "c.png < huge", ""})
    EXPECT_EQ(viewer(wrong).code, 2) << wrong << viewer(wrong).err;
  EXPECT_FALSE(fs::exists(folder_ / "c.png"));
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall::gui
