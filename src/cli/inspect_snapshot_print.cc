#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/text.h"
#include "checkpoint/dense_part.h"
#include "cli/inspect_snapshot.h"

namespace terrace {
namespace {

using Json = nlohmann::ordered_json;

std::string Bytes(int64_t bytes) { return ShortBytes(static_cast<double>(bytes)); }

std::string Rows(const TableReport& r, bool read) {
  if (read) return WithCommas(r.rows);
  if (r.table.rows_min == r.table.rows_max) return WithCommas(r.table.rows_min);
  return WithCommas(r.table.rows_min) + " - " + WithCommas(r.table.rows_max);
}

std::string Shape(const SnapshotDense& block) {
  return block.shape.empty() ? "1" : fmt::format("{}", fmt::join(block.shape, " x "));
}

std::string KeyOf(uint64_t key) { return fmt::format("{:#018x}", key); }

std::string RenderFacts(const SnapshotReport& r) {
  TextTable table({"snapshot", r.path}, TextTable::Align::kLeft);
  table.AddRow({"batch", WithCommas(r.info.batch)});
  table.AddRow({"epoch", WithCommas(r.info.epoch)});
  table.AddRow({"examples", WithCommas(r.info.examples)});
  table.AddRow({"created", r.info.created});
  table.AddRow({"by", fmt::format("{}, format {}", r.info.program, r.info.format)});
  for (const std::string& line : r.info.lineage) table.AddRow({"lineage", line});
  for (const TableReport& t : r.tables)
    if (!t.table.settled)
      table.AddRow({"not settled", fmt::format("table {}: a change of its rows was cut off; repeat "
                                               "the command that made it",
                                               t.table.name)});
  return table.Render();
}

std::string RenderTables(const SnapshotReport& r) {
  TextTable table({"table", "rows", "row bytes", "files", "partitions", "schema"});
  for (const TableReport& t : r.tables)
    table.AddRow({t.table.name, Rows(t, r.rows_read), std::to_string(t.table.row_bytes),
                  Bytes(t.file_bytes), std::to_string(t.partitions), t.table.schema});
  return table.Render();
}

std::string RenderNorms(const SnapshotReport& r) {
  TextTable table({"norm of weights", "min", "median", "99 %", "max", "not finite"});
  for (const TableReport& t : r.tables)
    table.AddRow({t.table.name, fmt::format("{:.4g}", t.norms.min()),
                  fmt::format("{:.4g}", t.norms.Quantile(0.5)),
                  fmt::format("{:.4g}", t.norms.Quantile(0.99)),
                  fmt::format("{:.4g}", t.norms.max()), WithCommas(t.norms.not_finite())});
  return table.Render();
}

std::string RenderHottest(const SnapshotReport& r) {
  TextTable table({"hottest rows", "key", "norm", "show", "click", "last seen"});
  for (const TableReport& t : r.tables) {
    for (const HotRow& row : t.hottest) {
      const auto count = [&](const std::string& text) { return t.counts ? text : "-"; };
      table.AddRow({t.table.name, KeyOf(row.key), fmt::format("{:.4g}", row.norm),
                    count(fmt::format("{:.6g}", row.stats.show)),
                    count(fmt::format("{:.6g}", row.stats.click)),
                    count(std::to_string(row.stats.seen))});
    }
  }
  return table.Render();
}

std::string RenderDense(const SnapshotReport& r) {
  TextTable table({"dense block", "shape", "numbers", "norm"});
  for (const DenseReport& d : r.dense)
    table.AddRow({d.block.name, Shape(d.block), WithCommas(NumbersOf(d.block)),
                  fmt::format("{:.4g}", d.norm)});
  return table.Render();
}

std::string RenderFiles(const SnapshotReport& r) {
  TextTable table({"file", "bytes"});
  for (const SnapshotFile& file : r.info.files) table.AddRow({file.name, WithCommas(file.bytes)});
  return table.Render();
}

Json TableJson(const TableReport& t, bool rows_read) {
  Json json = {{"table", t.table.name},        {"rows_min", t.table.rows_min},
               {"rows_max", t.table.rows_max}, {"row_bytes", t.table.row_bytes},
               {"file_bytes", t.file_bytes},   {"partitions", t.partitions},
               {"schema", t.table.schema},     {"settled", t.table.settled}};
  if (!rows_read) return json;
  json["rows"] = t.rows;
  json["norm"] = {{"min", t.norms.min()},
                  {"median", t.norms.Quantile(0.5)},
                  {"p99", t.norms.Quantile(0.99)},
                  {"max", t.norms.max()},
                  {"not_finite", t.norms.not_finite()}};
  json["hottest"] = Json::array();
  for (const HotRow& row : t.hottest) {
    Json one = {{"key", row.key}, {"norm", row.norm}};
    if (t.counts) {
      one["show"] = row.stats.show;
      one["click"] = row.stats.click;
      one["seen"] = row.stats.seen;
    }
    json["hottest"].push_back(one);
  }
  return json;
}

}  // namespace

std::string RenderSnapshot(const SnapshotReport& r) {
  std::string out = fmt::format("{}\n{}\n", RenderFacts(r), RenderTables(r));
  if (r.rows_read) out += fmt::format("{}\n{}\n", RenderNorms(r), RenderHottest(r));
  if (!r.dense.empty()) out += RenderDense(r) + "\n";
  return out + RenderFiles(r);
}

std::string SnapshotJson(const SnapshotReport& r) {
  Json json = {{"path", r.path},
               {"format", r.info.format},
               {"batch", r.info.batch},
               {"epoch", r.info.epoch},
               {"examples", r.info.examples},
               {"created", r.info.created},
               {"program", r.info.program},
               {"lineage", r.info.lineage}};
  json["tables"] = Json::array();
  for (const TableReport& t : r.tables) json["tables"].push_back(TableJson(t, r.rows_read));
  json["dense"] = Json::array();
  for (const DenseReport& d : r.dense)
    json["dense"].push_back({{"name", d.block.name}, {"shape", d.block.shape}, {"norm", d.norm}});
  json["dense_state"] = r.dense_state;
  json["files"] = Json::array();
  for (const SnapshotFile& file : r.info.files)
    json["files"].push_back(
        {{"name", file.name}, {"bytes", file.bytes}, {"hash", HashText(file.hash)}});
  // What is not UTF-8 in names is replaced.
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace terrace
