// `terrace train --resume --allow-new-slots` from the shell.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "command.h"

namespace terrace {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;

constexpr const char* kConfig = R"(
[data]
format = "csv"
train = "clicks.csv"
dense = ["d0", "d1"]
[tables.main]
dim = 4
[model]
hidden = [8]
[train]
batch = 200
[snapshot]
dir = "run"
)";

TEST(AllowNewSlots, TellsWhatIsNewAndWhatWasCarriedOver) {
  ScratchDir dir;
  dir.Write("run.toml", kConfig);
  const auto run = [&](const std::string& line) { return RunCommand(line, dir.path()); };
  ASSERT_EQ(run("terrace data gen clicks.csv --examples 2000 --slots 4 --features 50 --dense 2 "
                "--format csv")
                .exit_code,
            0);
  const std::string train = "terrace train run.toml --set 'data.slots=[\"s0..s";
  ASSERT_EQ(run(train + "2\"]'").exit_code, 0);
  CommandResult r = run("terrace inspect run");
  EXPECT_THAT(r.output, ContainsRegex("deep.0.weight +14 x 8 "));

  const std::string grown = train + "3\"]' --set tables.main.dim=6 --set train.epochs=2";
  r = run(grown + " --resume");
  EXPECT_EQ(r.exit_code, 2);
  EXPECT_THAT(r.output,
              AllOf(HasSubstr("data.slots: s3 is new"), HasSubstr("tables.main.dim: was 4, is 6"),
                    HasSubstr("--allow-new-slots goes on with them")));
  r = run(grown + " --allow-new-slots");
  EXPECT_EQ(r.exit_code, 2);
  EXPECT_THAT(r.output, HasSubstr("add --resume"));

  r = run(grown + " --resume --allow-new-slots --summary summary.json");
  ASSERT_EQ(r.exit_code, 0) << r.output;
  EXPECT_THAT(r.output,
              AllOf(HasSubstr("new slots: s3\n"),
                    ContainsRegex("wider table: main, dim 6 instead of 4, 1?[0-9][0-9] rows"),
                    HasSubstr("carried over: 131 dense parameters; 96 are new\n")));
  const auto growth = nlohmann::json::parse(dir.Read("summary.json")).at("growth");
  EXPECT_EQ(growth.at("new_slots").at(0), "s3");
  EXPECT_EQ(growth.at("new_tables").size(), 0u);
  EXPECT_EQ(growth.at("wider_tables")[0].at("to_dim"), 6);
  EXPECT_EQ(growth.at("carried_params"), 131);
  r = run("terrace inspect run");
  EXPECT_THAT(r.output, AllOf(ContainsRegex("deep.0.weight +26 x 8 "), HasSubstr("new slots: s3")));
  EXPECT_EQ(run("terrace verify run --all").exit_code, 0);
}

}  // namespace
}  // namespace terrace
