// Does the painter draw what the SVG says? Each shape and each kind of figure against our own SVG, rendered by Qt's
// SVG library.
#include "gui/paint/figure_painter.h"

#include <gtest/gtest.h>
#include <QPainter>
#include <QSvgRenderer>

#include <cmath>
#include <random>
#include <sstream>

#include "gui/paint/pixel_fill.h"
#include "sim/error.h"
#include "tests/gui/support/image_check.h"
#include "traces/figure/palette.h"
#include "traces/figure/svg.h"

namespace memwall::gui {
namespace MEMWALL_TEST_FILE {

QImage svg_image(const Figure& figure, double scale) {
  std::ostringstream text;
  write_svg(figure, text);
  QSvgRenderer renderer(QByteArray::fromStdString(text.str()));
  EXPECT_TRUE(renderer.isValid());
  QImage image = image_of(Figure{figure.width, figure.height, "", {}}, scale);
  QPainter painter(&image);
  painter.setRenderHint(QPainter::Antialiasing);
  renderer.render(&painter, QRectF(0, 0, image.width(), image.height()));
  return image;
}

void expect_as_svg(const Figure& figure, const std::string& what, double tolerance = 0.0005) {
  for (const double scale : {1.0, 2.0})
    expect_same_picture(image_of(figure, scale), svg_image(figure, scale), what, tolerance);
}

TEST(FigurePainter, ShapesAreThoseOfTheSvg) {
  Figure figure{400, 300, "shapes", {}};
  figure.add(Rectangle{10, 10, 80, 40, palette::kBlue});
  figure.add(Rectangle{100.3, 10.6, 80.5, 40.7, palette::kOrange, palette::kText});
  figure.add(Rectangle{200, 10, 80, 40, {0, 158, 115, 100}, palette::kText, 12});
  figure.add(Rectangle{300, 10, 80, 6, palette::kPurple, kNoColor, 40});
  figure.add(Rectangle{300, 30, 80, 20, kNoColor, palette::kVermillion});
  figure.add(Line{{10, 80}, {390, 80}, palette::kText, 0.75});
  figure.add(Line{{10, 90}, {390, 90}, palette::kText, 3, true});
  figure.add(Line{{10, 100}, {200, 150}, palette::kLimit, 6});
  figure.add(Line{{220.4, 100}, {220.4, 150}, palette::kLimit, 1.5});
  figure.add(Polyline{{{240, 150}, {260, 100}, {280, 150}, {300, 100}}, palette::kBlue, 8});
  figure.add(
      Polyline{{{320, 150}, {390, 150}, {330, 100}, {355, 170}, {380, 100}}, palette::kText, 2, {240, 228, 66, 160}});
  figure.add(Rectangle{30, 170, 100, 100, palette::kBlue});
  figure.add(Rectangle{60, 190, 100, 50, {213, 94, 0, 90}});
  figure.add(Rectangle{150, 200, 200, 40, {0, 0, 0, 0}});
  expect_as_svg(figure, "shapes");
}

TEST(FigurePainter, TextsStandWhereTheSvgHasThem) {
  Figure figure{500, 260, "texts", {}};
  const Color black = palette::kText;
  for (int i = 0; i < 3; ++i) {
    const double y = 30 + 40 * i;
    figure.add(Line{{250, y - 20}, {250, y + 8}, palette::kGrid, 1});
    figure.add(Text{{250, y}, "Anchored text, 12.5 GB/s", 11.0 + 2 * i, static_cast<Anchor>(i), black, i == 1});
  }
  figure.add(Text{{20, 150}, "half a size: aten::addmm_", 9.5, Anchor::start, palette::kVermillion});
  figure.add(Text{{40, 250}, "turned", 12, Anchor::start, black, false, 90});
  figure.add(Text{{90, 250}, "aslant", 12, Anchor::middle, black, false, 30});
  figure.add(Text{{250, 180}, "  \xc2\xb5s,  <b> &amp; \"x\"\ttab ", 12, Anchor::start, black});
  figure.add(Text{{250, 210}, "invalid \xff byte", 12, Anchor::start, black});
  expect_as_svg(figure, "texts", 0.004);
}

// What Qt's own rasterizer makes of the same rectangles: the reference of the fast way.
TEST(FigurePainter, FastRectanglesCoverWhatQtsRasterizerCovers) {
  std::mt19937 random(7);
  std::uniform_real_distribution<double> place(-5, 190), length(0.1, 12);
  for (const double scale : {1.0, 1.25, 2.0}) {
    QImage fast(static_cast<int>(200 * scale), static_cast<int>(200 * scale), QImage::Format_RGB32);
    fast.fill(Qt::white);
    QImage reference = fast;
    QPainter a(&fast), b(&reference);
    for (QPainter* painter : {&a, &b}) {
      painter->scale(scale, scale);
      painter->translate(0.3, 0.7);
    }
    b.setRenderHint(QPainter::Antialiasing);
    b.setPen(Qt::NoPen);
    PixelFill fill(a);
    for (int i = 0; i < 400; ++i) {
      const Color color = i % 3 ? palette::kBlue : Color{230, 159, 0, 120};
      const double x = place(random), y = place(random), width = length(random), height = length(random);
      fill.rectangle(x, y, x + width, y + height, color);
      b.setBrush(QColor(color.red, color.green, color.blue, color.opacity));
      b.drawRect(QRectF(x, y, width, height));
    }
    a.end();
    b.end();
    int largest = 0;
    for (int y = 0; y < fast.height(); ++y)
      for (int x = 0; x < fast.width(); ++x)
        largest = std::max(largest, std::abs(qBlue(fast.pixel(x, y)) - qBlue(reference.pixel(x, y))));
    EXPECT_LE(largest, 12) << "at scale " << scale;
  }
}

// The share of each pixel by brute force: 16 x 16 points per pixel.
TEST(FigurePainter, StepAreasCoverWhatTheyEnclose) {
  std::mt19937 random(11);
  std::uniform_real_distribution<double> height(-2, 44), step(0.03, 2.5);
  for (int round = 0; round < 20; ++round) {
    struct Piece {
      double x, upper, lower;
    };
    std::vector<Piece> pieces;
    for (double x = -3; x < 63; x += step(random)) pieces.push_back({x, height(random), height(random)});
    std::vector<Point> points;
    const auto until = [&](std::size_t i) { return i + 1 < pieces.size() ? pieces[i + 1].x : 58.3; };
    while (pieces.back().x > 58.3) pieces.pop_back();
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      points.push_back({pieces[i].x, pieces[i].upper});
      points.push_back({until(i), pieces[i].upper});
    }
    for (std::size_t i = pieces.size(); i-- > 0;) {
      points.push_back({until(i), pieces[i].lower});
      points.push_back({pieces[i].x, pieces[i].lower});
    }
    QImage image(64, 40, QImage::Format_RGB32);
    image.fill(Qt::white);
    QPainter painter(&image);
    ASSERT_TRUE(PixelFill(painter).step_area(points, Color{0, 0, 0}));
    painter.end();
    constexpr int kPoints = 16;
    for (int y = 0; y < image.height(); ++y)
      for (int x = 0; x < image.width(); ++x) {
        double inside = 0;
        for (int i = 0; i < kPoints * kPoints; ++i) {
          const double at_x = x + (i % kPoints + 0.5) / kPoints, at_y = y + (i / kPoints + 0.5) / kPoints;
          for (std::size_t p = 0; p < pieces.size(); ++p)
            if (at_x >= pieces[p].x && at_x < until(p))
              inside += at_y >= std::min(pieces[p].upper, pieces[p].lower) &&
                        at_y < std::max(pieces[p].upper, pieces[p].lower);
        }
        EXPECT_NEAR(qRed(image.pixel(x, y)), 255 * (1 - inside / (kPoints * kPoints)), 20) << x << ", " << y;
      }
  }
}

TEST(FigurePainter, OtherPolygonsAreNoStepAreas) {
  QImage image(10, 10, QImage::Format_RGB32);
  QPainter painter(&image);
  PixelFill fill(painter);
  EXPECT_FALSE(fill.step_area({{0, 0}, {5, 5}, {0, 9}}, palette::kBlue));  // a slope
  EXPECT_FALSE(fill.step_area({{0, 0}, {5, 0}, {5, 3}, {2, 3}, {2, 5}, {7, 5}, {7, 9}, {0, 9}}, palette::kBlue));
  EXPECT_FALSE(fill.step_area({{5, 0}, {5, 9}, {0, 9}, {0, 0}}, palette::kBlue));  // it begins at the right
  EXPECT_TRUE(fill.step_area({{0, 0}, {5, 0}, {5, 3}, {0, 3}}, palette::kBlue));
}

TEST(FigurePainter, KeptTextsLookAsNewOnes) {
  Figure figure{300, 100, "", {}};
  for (int i = 0; i < 5; ++i)
    figure.add(Text{{10.0 + 40 * i, 15.0 + 15 * i}, "kernel", 10.0 + i, Anchor::start, palette::kText, i % 2 == 1});
  const auto painted = [&](TextCache& texts) {
    QImage image(300, 100, QImage::Format_RGB32);
    image.fill(Qt::white);
    QPainter painter(&image);
    paint_figure(figure, painter, texts);
    return image;
  };
  TextCache texts;
  const QImage first = painted(texts);
  EXPECT_EQ(texts.size(), 5u);
  EXPECT_EQ(painted(texts), first);
  EXPECT_EQ(texts.size(), 5u);
  EXPECT_EQ(image_of(figure, 1), first);
}

TEST(FigurePainter, TheCacheOfTextsStaysSmall) {
  QImage image(10, 10, QImage::Format_RGB32);
  QPainter painter(&image);
  TextCache texts;
  for (int i = 0; i < 20'000; ++i) texts.paint(Text{{0, 5}, std::to_string(i), 10, Anchor::start, {}}, painter);
  EXPECT_LE(texts.size(), 8192u);
}

TEST(FigurePainter, ThePaintersStateIsAsBefore) {
  QImage image(50, 50, QImage::Format_RGB32);
  QPainter painter(&image);
  painter.translate(3, 4);
  painter.setPen(Qt::red);
  Figure figure{50, 50, "", {}};
  figure.add(Text{{5, 20}, "x", 10.5, Anchor::start, palette::kText, true, 45});
  figure.add(Line{{0, 0}, {20, 30}, palette::kText, 2, true});
  figure.add(Rectangle{1, 1, 5, 5, palette::kBlue});
  paint_figure(figure, painter);
  EXPECT_EQ(painter.transform(), QTransform::fromTranslate(3, 4));
  EXPECT_EQ(painter.pen().color(), QColor(Qt::red));
  EXPECT_FALSE(painter.testRenderHint(QPainter::Antialiasing));
}

TEST(FigurePainter, AnImageTooLargeIsRefused) {
  Figure figure{960, 500, "", {}};
  EXPECT_EQ(image_of(figure, 1.5).size(), QSize(1440, 750));
  EXPECT_THROW(image_of(figure, 40), UsageError);
  EXPECT_THROW(image_of(figure, 0), UsageError);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall::gui
