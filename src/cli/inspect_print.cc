#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/text.h"
#include "cli/inspect.h"

namespace terrace {
namespace {

std::string Bytes(int64_t bytes) { return ShortBytes(static_cast<double>(bytes)); }

std::string Range(int64_t low, int64_t high) {
  return low == high ? WithCommas(low) : WithCommas(low) + " - " + WithCommas(high);
}

std::string LogShare(int64_t log_keys, int64_t base_rows) {
  if (base_rows == 0) return "-";
  return fmt::format("{:.1f} %",
                     100 * static_cast<double>(log_keys) / static_cast<double>(base_rows));
}

std::string RenderContents(const std::vector<StoreReport>& reports) {
  TextTable table({"table", "rows", "row bytes", "page bytes", "partitions", "commit"});
  for (const StoreReport& r : reports)
    table.AddRow({r.name, Range(r.rows_min, r.rows_max), std::to_string(r.stats.row_bytes),
                  std::to_string(r.stats.page_bytes), std::to_string(r.stats.partitions.size()),
                  std::to_string(r.stats.commits)});
  return table.Render();
}

std::string RenderDisk(const std::vector<StoreReport>& reports) {
  TextTable table({"on disk", "base", "logs", "log share", "garbage", "amplification"});
  for (const StoreReport& r : reports)
    table.AddRow({r.name, Bytes(r.base_bytes), Bytes(r.log_bytes),
                  LogShare(r.stats.total.log_keys, r.stats.total.base_rows), Bytes(r.garbage_bytes),
                  r.rows_min == 0 ? "-" : fmt::format("{:.2f}", r.space_amplification)});
  return table.Render();
}

std::string RenderMemory(const std::vector<StoreReport>& reports) {
  TextTable table({"in memory", "fences", "filters", "bits a row", "index", "to open"});
  for (const StoreReport& r : reports)
    table.AddRow({r.name, Bytes(r.stats.fence_bytes), Bytes(r.stats.filter_bytes),
                  fmt::format("{:.1f}", r.stats.filter_bits), Bytes(r.stats.index_bytes),
                  Bytes(r.memory_to_open)});
  return table.Render();
}

std::string RenderPartitions(const StoreReport& report) {
  TextTable table({"partition", "rows", "base rows", "base pages", "logs", "log pages", "log keys",
                   "tombstones", "log share", "bytes"});
  for (size_t p = 0; p < report.stats.partitions.size(); ++p) {
    const PartitionStats& s = report.stats.partitions[p];
    table.AddRow({std::to_string(p), Range(s.rows_min(), s.rows_max()), WithCommas(s.base_rows),
                  WithCommas(s.base_pages), std::to_string(s.logs), WithCommas(s.log_pages),
                  WithCommas(s.log_keys), WithCommas(s.tombstones),
                  LogShare(s.log_keys, s.base_rows), Bytes(s.file_bytes)});
  }
  return fmt::format("\n{}\n\n{}", report.path, table.Render());
}

nlohmann::ordered_json PartitionJson(const PartitionStats& s) {
  return {{"rows_min", s.rows_min()},   {"rows_max", s.rows_max()}, {"base_rows", s.base_rows},
          {"base_pages", s.base_pages}, {"logs", s.logs},           {"log_pages", s.log_pages},
          {"log_entries", s.log_rows},  {"log_keys", s.log_keys},   {"tombstones", s.tombstones},
          {"file_bytes", s.file_bytes}};
}

nlohmann::ordered_json StoreJson(const StoreReport& r, bool partitions) {
  const DiskStats& s = r.stats;
  nlohmann::ordered_json json = {{"table", r.name},
                                 {"path", r.path},
                                 {"rows_min", r.rows_min},
                                 {"rows_max", r.rows_max},
                                 {"row_bytes", s.row_bytes},
                                 {"page_bytes", s.page_bytes},
                                 {"partitions", s.partitions.size()},
                                 {"commit", s.commits},
                                 {"base_bytes", r.base_bytes},
                                 {"log_bytes", r.log_bytes},
                                 {"log_entries", s.total.log_rows},
                                 {"log_keys", s.total.log_keys},
                                 {"tombstones", s.total.tombstones},
                                 {"log_share", s.log_share},
                                 {"garbage_bytes", r.garbage_bytes},
                                 {"space_amplification", r.space_amplification},
                                 {"fence_bytes", s.fence_bytes},
                                 {"filter_bytes", s.filter_bytes},
                                 {"filter_bits", s.filter_bits},
                                 {"index_bytes", s.index_bytes},
                                 {"memory_to_open", r.memory_to_open}};
  if (partitions)
    for (const PartitionStats& partition : s.partitions)
      json["by_partition"].push_back(PartitionJson(partition));
  return json;
}

}  // namespace

std::string RenderStores(const std::vector<StoreReport>& reports, bool partitions) {
  std::string out = fmt::format("{}\n{}\n{}", RenderContents(reports), RenderDisk(reports),
                                RenderMemory(reports));
  if (partitions)
    for (const StoreReport& report : reports) out += RenderPartitions(report);
  return out;
}

std::string StoresJson(const std::vector<StoreReport>& reports, bool partitions) {
  nlohmann::ordered_json tables = nlohmann::ordered_json::array();
  for (const StoreReport& report : reports) tables.push_back(StoreJson(report, partitions));
  return nlohmann::ordered_json{{"tables", tables}}.dump(2) + "\n";
}

}  // namespace terrace
