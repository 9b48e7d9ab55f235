// PNG and PDF files of figures.
#include <fmt/format.h>
#include <QBuffer>
#include <QHashFunctions>
#include <QImageWriter>
#include <QPageSize>
#include <QPainter>
#include <QPdfWriter>

#include <algorithm>

#include "files/file_writer.h"
#include "gui/paint/figure_painter.h"
#include "sim/error.h"

namespace memwall::gui {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse(const fs::path& path, const std::string& reason) {
  throw UsageError(fmt::format("{}: the file cannot be written ({}).", path.string(), reason));
}

void write_bytes(const QByteArray& bytes, const fs::path& path) {
  FileWriter file(path);
  file.append({bytes.constData(), static_cast<std::size_t>(bytes.size())});
  file.commit();
}

// Qt writes when a PDF was made. Blanks of the same length leave every offset in the file right.
void remove_date(QByteArray& pdf) {
  constexpr char kKey[] = "/CreationDate (";
  const qsizetype begin = pdf.lastIndexOf(kKey);
  if (begin < 0) return;
  const qsizetype end = pdf.indexOf(')', begin);
  if (end < 0) return;
  std::fill(pdf.begin() + begin, pdf.begin() + end + 1, ' ');
}

// Qt writes fonts and states of a PDF in the order of a hash table, whose seed differs from process to process.
class FixedHashSeed {
 public:
  FixedHashSeed() { QHashSeed::setDeterministicGlobalSeed(); }
  ~FixedHashSeed() { QHashSeed::resetRandomGlobalSeed(); }
  FixedHashSeed(const FixedHashSeed&) = delete;
  FixedHashSeed& operator=(const FixedHashSeed&) = delete;
};

}  // namespace

void write_png(const Figure& figure, const fs::path& path, double scale) {
  const QImage image = image_of(figure, scale);
  QByteArray bytes;
  QBuffer buffer(&bytes);
  buffer.open(QIODevice::WriteOnly);
  QImageWriter writer(&buffer, "png");
  if (!writer.write(image)) refuse(path, writer.errorString().toStdString());
  write_bytes(bytes, path);
}

void write_pdf(const Figure& figure, const fs::path& path) {
  constexpr int kPerInch = 1200;  // so fine are the coordinates in the file
  QByteArray bytes;
  {
    const FixedHashSeed seed;
    QBuffer buffer(&bytes);
    buffer.open(QIODevice::WriteOnly);
    QPdfWriter writer(&buffer);
    writer.setResolution(kPerInch);
    writer.setCreator("memwall");
    writer.setTitle(QString::fromStdString(figure.title));
    writer.setPageMargins(QMarginsF());
    writer.setPageSize(
        QPageSize(QSizeF(figure.width, figure.height), QPageSize::Point, "figure", QPageSize::ExactMatch));
    QPainter painter;
    if (!painter.begin(&writer)) refuse(path, "Qt cannot make a PDF of this size");
    painter.scale(kPerInch / 72.0, kPerInch / 72.0);
    paint_figure(figure, painter);
  }
  remove_date(bytes);
  write_bytes(bytes, path);
}

}  // namespace memwall::gui
