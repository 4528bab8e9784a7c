#include "train/report.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/cpu.h"
#include "base/text.h"

namespace terrace {
namespace {

using Json = nlohmann::ordered_json;

// JSON has no NaN: a metric that does not exist is null.
Json Number(double x) { return std::isfinite(x) ? Json(x) : Json(nullptr); }

double PerSecond(int64_t n, double seconds) {
  return seconds > 0 ? static_cast<double>(n) / seconds : 0;
}

void AddMetrics(const Metrics& m, Json* json) {
  (*json)["auc"] = Number(m.auc);
  (*json)["auc_exact"] = m.auc_exact;
  (*json)["auc_bucketed"] = Number(m.auc_bucketed);
  (*json)["logloss"] = Number(m.logloss);
  (*json)["normalized_entropy"] = Number(m.normalized_entropy);
  (*json)["copc"] = Number(m.copc);
  (*json)["label_rate"] = Number(m.label_rate);
  if (m.has_gauc) {
    (*json)["gauc"] = Number(m.gauc.value);
    (*json)["gauc_groups"] = m.gauc.groups;
    (*json)["gauc_skipped_groups"] = m.gauc.skipped_groups;
  }
  if (m.has_best_auc) (*json)["best_auc"] = Number(m.best_auc);
}

void AddTiers(const RunConfig& config, const RunReport& report, Json* json) {
  const TierReport& tiers = report.tiers;
  const int64_t misses = tiers.used ? tiers.rows.lookups - tiers.rows.hits : report.rows_created;
  (*json)["memory"] = {{"budget", tiers.used ? tiers.budget : config.tiers.memory.budget},
                       {"rows", report.rows_in_memory},
                       {"hits", report.row_lookups - misses},
                       {"misses", misses},
                       {"bytes", report.arena_bytes + report.index_bytes + tiers.metadata_bytes},
                       {"arena_bytes", report.arena_bytes},
                       {"index_bytes", report.index_bytes},
                       {"metadata_bytes", tiers.metadata_bytes},
                       {"evicted", tiers.rows.evicted}};
  if (!tiers.used) return;
  const DiskStats& disk = tiers.disk;
  (*json)["disk"] = {{"budget", config.tiers.disk.budget},
                     {"hits", tiers.rows.from_disk},
                     {"misses", tiers.rows.created},
                     {"rows_written", tiers.rows.written},
                     {"eval_reads", tiers.rows.eval_reads},
                     {"eval_evicted", tiers.rows.eval_evicted},
                     {"bytes", disk.total.file_bytes},
                     {"memory_bytes", tiers.disk_memory_bytes},
                     {"page_reads", disk.page_reads},
                     {"bytes_read", disk.pages_read * static_cast<int64_t>(disk.page_bytes)},
                     {"filtered", disk.filtered},
                     {"bytes_written", disk.log_bytes_written + disk.merge_bytes_written},
                     {"merges", disk.merges},
                     {"engine", disk.engine},
                     {"direct", disk.direct}};
  (*json)["windows"] = {{"count", tiers.windows.windows},
                        {"batches", tiers.window},
                        {"cut", tiers.windows.cut},
                        {"squeezed", tiers.windows.squeezed}};
}

void AddLife(const LifeReport& life, Json* json) {
  if (!life.used) return;
  (*json)["life"] = {{"admitted", life.admitted},
                     {"refused", life.refused},
                     {"expired", life.expired},
                     {"admission_bytes", life.admission_bytes}};
}

Json GrowthJson(const GrowthReport& growth) {
  Json tables = Json::array();
  for (const GrowthReport::WiderTable& table : growth.wider_tables)
    tables.push_back({{"table", table.name},
                      {"from_dim", table.from},
                      {"to_dim", table.to},
                      {"rows_rewritten", table.rows}});
  return {{"new_slots", growth.new_slots},
          {"new_tables", growth.new_tables},
          {"wider_tables", tables},
          {"carried_params", growth.carried_params},
          {"new_params", growth.new_params}};
}

void AddSnapshots(const RunReport& report, Json* json) {
  if (report.resumed_from >= 0) (*json)["resumed_from"] = report.resumed_from;
  if (report.grown) (*json)["growth"] = GrowthJson(report.growth);
  const SnapshotReport& snapshots = report.snapshots;
  if (snapshots.taken + snapshots.failed == 0) return;
  (*json)["snapshots"] = {{"taken", snapshots.taken},
                          {"failed", snapshots.failed},
                          {"last_batch", snapshots.last_batch},
                          {"seconds", snapshots.seconds},
                          {"longest_seconds", snapshots.longest_seconds},
                          {"pause", snapshots.pause},
                          {"longest_pause", snapshots.longest_pause},
                          {"rows_written", snapshots.rows_written}};
}

const char* KindName(ModelKind kind) {
  switch (kind) {
    case ModelKind::kLr:
      return "lr";
    case ModelKind::kFm:
      return "fm";
    case ModelKind::kWideDeep:
      return "widedeep";
    case ModelKind::kDeepFm:
      return "deepfm";
    case ModelKind::kDcnV2:
      return "dcnv2";
    case ModelKind::kDlrm:
      return "dlrm";
  }
  return "?";
}

std::string Percent(int64_t part, int64_t of) {
  return fmt::format("{:.1f} %", 100.0 * static_cast<double>(part) /
                                     static_cast<double>(std::max<int64_t>(of, 1)));
}

void AddTierRows(const RunReport& report, TextTable* table) {
  const TierReport& tiers = report.tiers;
  const auto bytes = [](int64_t n) { return ShortBytes(static_cast<double>(n)); };
  const auto count = [](int64_t n) { return ShortCount(static_cast<double>(n)); };
  table->AddRow({"rows", fmt::format("{}, {} of them in memory", count(report.rows),
                                     count(report.rows_in_memory))});
  table->AddRow({"memory tier", fmt::format("{} found there; {} rows, {} index, {} pins and policy",
                                            Percent(tiers.rows.hits, tiers.rows.lookups),
                                            bytes(report.arena_bytes), bytes(report.index_bytes),
                                            bytes(tiers.metadata_bytes))});
  table->AddRow({"disk tier",
                 fmt::format("{} found there, {} were new; {} of files, {} of memory",
                             Percent(tiers.rows.from_disk, tiers.rows.lookups),
                             Percent(tiers.rows.created, tiers.rows.lookups),
                             bytes(tiers.disk.total.file_bytes), bytes(tiers.disk_memory_bytes))});
  table->AddRow(
      {"windows",
       fmt::format(
           "{} of up to {} batches{}", count(tiers.windows.windows), tiers.window,
           tiers.windows.cut > 0 ? fmt::format(", {} cut", count(tiers.windows.cut)) : "")});
  table->AddRow({"memory budget", bytes(tiers.budget)});
}

void AddStages(const RunReport& report, Json* json) {
  for (const StageReport& stage : report.stages)
    (*json)["stages"][stage.name] = {{"busy", stage.time.busy},
                                     {"wait_input", stage.time.wait_input},
                                     {"wait_output", stage.time.wait_output},
                                     {"bytes", stage.bytes}};
}

void AddMemory(const RunReport& report, Json* json) {
  (*json)["queue_bytes"] = report.queue_bytes;
  (*json)["reader_bytes"] = report.reader_bytes;
  (*json)["scratch_bytes"] = report.scratch_bytes;
  (*json)["process_bytes"] = report.process_bytes;
  (*json)["dense_params"] = report.dense_params;
  (*json)["peak_rss"] = report.peak_rss;
}

void AddMetricRows(const Metrics& m, TextTable* table) {
  table->AddRow({"test AUC", fmt::format("{:.5f}{}", m.auc, m.auc_exact ? "" : " (bucketed)")});
  if (m.has_best_auc) table->AddRow({"best possible AUC", fmt::format("{:.5f}", m.best_auc)});
  if (m.has_gauc)
    table->AddRow({"GAUC", fmt::format("{:.5f} over {} groups", m.gauc.value, m.gauc.groups)});
  table->AddRow({"log loss", fmt::format("{:.5f}", m.logloss)});
  table->AddRow({"normalized entropy", fmt::format("{:.5f}", m.normalized_entropy)});
  table->AddRow({"COPC (clicks / predicted)", fmt::format("{:.4f}", m.copc)});
  table->AddRow({"test examples", ShortCount(static_cast<double>(m.examples))});
}

std::string MemoryRows(const RunReport& report) {
  return fmt::format("{} ({} rows, {} index)", ShortCount(static_cast<double>(report.rows)),
                     ShortBytes(static_cast<double>(report.arena_bytes)),
                     ShortBytes(static_cast<double>(report.index_bytes)));
}

}  // namespace

std::string SummaryJson(const RunConfig& config, const RunReport& report) {
  Json json;
  json["model"] = KindName(config.model.kind);
  json["seed"] = config.seed;
  json["model_digest"] = report.model_digest;
  if (!report.evaluations.empty()) {
    const Evaluation& last = report.evaluations.back();
    AddMetrics(last.metrics, &json);
    json["test_examples"] = last.metrics.examples;
  }
  json["train_loss"] = Number(report.train_loss);
  json["train_auc"] = Number(report.train_auc);
  json["examples"] = report.examples;
  json["batches"] = report.batches;
  json["epochs"] = report.epochs;
  json["interrupted"] = report.interrupted;
  json["stopped_early"] = report.stopped_early;
  json["skipped_rows"] = report.skipped_rows;
  json["saturated"] = report.saturated;
  json["seconds"] = report.seconds;
  json["train_seconds"] = report.train_seconds;
  json["examples_per_second"] =
      PerSecond(report.examples - report.resumed_examples, report.train_seconds);
  json["threads"] = report.threads;
  json["isa"] = IsaName(CurrentIsa());
  AddStages(report, &json);
  json["bottleneck"] = report.bottleneck;
  json["advice"] = report.advice;
  json["rows"] = report.rows;
  AddTiers(config, report, &json["tiers"]);
  AddLife(report.life, &json);
  AddSnapshots(report, &json);
  AddMemory(report, &json);
  for (const Evaluation& e : report.evaluations) {
    Json one = {{"step", e.step}, {"epoch", e.epoch}, {"seconds", e.seconds}};
    AddMetrics(e.metrics, &one);
    json["evaluations"].push_back(one);
  }
  for (const TimePoint& p : report.timeline) {
    Json one = {{"seconds", p.seconds},
                {"examples", p.examples},
                {"longest_batch", p.longest_batch},
                {"rss", p.rss}};
    if (!report.tiers.used) one["rows_in_memory"] = p.rows_in_memory;
    if (report.tiers.used)
      one.update({{"rows", p.tiers.created},
                  {"disk_bytes", p.disk_bytes},
                  {"lookups", p.tiers.lookups},
                  {"memory_hits", p.tiers.hits},
                  {"disk_hits", p.tiers.from_disk}});
    json["timeline"].push_back(one);
  }
  return json.dump(2) + "\n";
}

std::string ReportTable(const RunConfig& config, const RunReport& report) {
  std::string out = "\n";
  TextTable result({KindName(config.model.kind), ""}, TextTable::Align::kLeft);
  if (!report.evaluations.empty()) AddMetricRows(report.evaluations.back().metrics, &result);
  result.AddRow({"train loss, AUC", fmt::format("{:.5f}, {:.5f} (last epoch, before update)",
                                                report.train_loss, report.train_auc)});
  result.AddRow(
      {"trained", fmt::format("{} examples, {} batches, {} epoch{}{}",
                              ShortCount(static_cast<double>(report.examples)), report.batches,
                              report.epochs, report.epochs == 1 ? "" : "s",
                              report.interrupted     ? " (interrupted)"
                              : report.stopped_early ? " (stopped early)"
                                                     : "")});
  if (report.skipped_rows > 0)
    result.AddRow({"bad rows skipped", ShortCount(static_cast<double>(report.skipped_rows))});
  if (report.life.admitted + report.life.refused > 0)
    result.AddRow({"keys of batches",
                   fmt::format("{} admitted, {} refused; {} of memory",
                               ShortCount(static_cast<double>(report.life.admitted)),
                               ShortCount(static_cast<double>(report.life.refused)),
                               ShortBytes(static_cast<double>(report.life.admission_bytes)))});
  if (report.life.expired > 0)
    result.AddRow({"rows expired", ShortCount(static_cast<double>(report.life.expired))});
  if (report.saturated > 0)
    result.AddRow(
        {"numbers too large for their codec", ShortCount(static_cast<double>(report.saturated))});
  result.AddRow(
      {"speed", fmt::format("{} examples/s, {} threads, {} in all",
                            ShortCount(PerSecond(report.examples - report.resumed_examples,
                                                 report.train_seconds)),
                            report.threads, ShortSeconds(report.seconds))});
  if (!report.tiers.used) result.AddRow({"rows", MemoryRows(report)});
  if (report.tiers.used) AddTierRows(report, &result);
  if (report.grown)
    for (const std::string& line : report.growth.Lines()) {
      const size_t colon = line.find(": ");
      result.AddRow({line.substr(0, colon), line.substr(colon + 2)});
    }
  const SnapshotReport& snapshots = report.snapshots;
  if (snapshots.taken + snapshots.failed > 0)
    result.AddRow(
        {"snapshots",
         fmt::format(
             "{} taken{}, the longest in {}; training paused for {} at most", snapshots.taken,
             snapshots.failed > 0 ? fmt::format(", {} failed", snapshots.failed) : "",
             ShortSeconds(snapshots.longest_seconds), ShortSeconds(snapshots.longest_pause))});
  result.AddRow({"dense parameters", ShortCount(static_cast<double>(report.dense_params))});
  result.AddRow({"peak memory", ShortBytes(static_cast<double>(report.peak_rss))});
  result.AddRow({"model digest", report.model_digest});
  out += result.Render() + "\n";

  TextTable stages({"stage", "busy", "waits for input", "waits for room", "moved", ""});
  for (const StageReport& stage : report.stages)
    stages.AddRow({stage.name, ShortSeconds(stage.time.busy), ShortSeconds(stage.time.wait_input),
                   ShortSeconds(stage.time.wait_output),
                   ShortBytes(static_cast<double>(stage.bytes)),
                   stage.name == report.bottleneck ? "<- bottleneck" : ""});
  out += stages.Render();
  if (!report.advice.empty())
    out += fmt::format("{}-bound: {}\n", report.bottleneck, report.advice);
  return out;
}

std::string EvalSummaryJson(const RunConfig& config, const RunReport& report,
                            const std::string& snapshot) {
  Json json;
  json["snapshot"] = snapshot;
  json["model"] = KindName(config.model.kind);
  json["seed"] = config.seed;
  json["model_digest"] = report.model_digest;
  for (const Evaluation& e : report.evaluations) {
    AddMetrics(e.metrics, &json);
    json["test_examples"] = e.metrics.examples;
    json["eval_seconds"] = e.seconds;
    json["examples_per_second"] = PerSecond(e.metrics.examples, e.seconds);
  }
  json["examples"] = report.examples;
  json["batches"] = report.batches;
  json["epochs"] = report.epochs;
  json["skipped_rows"] = report.skipped_rows;
  json["seconds"] = report.seconds;
  json["threads"] = report.threads;
  json["isa"] = IsaName(CurrentIsa());
  AddStages(report, &json);
  json["rows"] = report.rows;
  AddTiers(config, report, &json["tiers"]);
  AddMemory(report, &json);
  return json.dump(2) + "\n";
}

std::string EvalReportTable(const RunConfig& config, const RunReport& report) {
  const auto count = [](int64_t n) { return ShortCount(static_cast<double>(n)); };
  const auto bytes = [](int64_t n) { return ShortBytes(static_cast<double>(n)); };
  TextTable result({KindName(config.model.kind), ""}, TextTable::Align::kLeft);
  for (const Evaluation& e : report.evaluations) AddMetricRows(e.metrics, &result);
  if (report.skipped_rows > 0) result.AddRow({"bad rows skipped", count(report.skipped_rows)});
  result.AddRow(
      {"trained", fmt::format("{} examples, {} batches", count(report.examples), report.batches)});
  for (const Evaluation& e : report.evaluations)
    result.AddRow({"speed", fmt::format("{} examples/s, {} threads, {} in all",
                                        ShortCount(PerSecond(e.metrics.examples, e.seconds)),
                                        report.threads, ShortSeconds(report.seconds))});
  const TierReport& tiers = report.tiers;
  if (tiers.used) {
    result.AddRow({"rows", fmt::format("{}, in the snapshot's files: {} read there, {} of memory",
                                       count(report.rows), count(tiers.rows.eval_reads),
                                       bytes(tiers.disk_memory_bytes))});
    result.AddRow({"memory budget", bytes(tiers.budget)});
  } else {
    result.AddRow({"rows", MemoryRows(report)});
  }
  result.AddRow({"peak memory", bytes(report.peak_rss)});
  result.AddRow({"model digest", report.model_digest});
  return result.Render();
}

}  // namespace terrace
