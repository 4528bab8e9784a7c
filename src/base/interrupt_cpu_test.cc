#include "base/interrupt_cpu.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/sysmacros.h>

#include <fstream>
#include <thread>

#include "base/test_dir.h"

namespace terrace {
namespace {

namespace fs = std::filesystem;

// A disk of a virtual machine: one queue, interrupt 36 for it and 35 for its settings.
class InterruptCpuTest : public testing::Test {
 protected:
  void SetUp() override {
    fs::create_directories(disk_ / "mq/0");
    fs::create_directories(disk_ / "vda1");
    Write(disk_ / "vda1/partition", "1");
    for (const char* irq : {"35", "36"}) fs::create_directories(pci_ / "msi_irqs" / irq);
    fs::create_directories(files_.sys / "dev/block");
    fs::create_directory_symlink(disk_, files_.sys / "dev/block/254:0");
    fs::create_directory_symlink(disk_ / "vda1", files_.sys / "dev/block/254:1");
    Write(files_.proc / "interrupts",
          "           CPU0       CPU1\n"
          " 35:          1          0 PCI-MSIX-0000:00:02.0   0-edge      virtio1-config\n"
          " 36:          7      14021 PCI-MSIX-0000:00:02.0   1-edge      virtio1-req.0\n");
    Write(files_.proc / "irq/35/effective_affinity_list", "0\n");
    Write(files_.proc / "irq/36/effective_affinity_list", "1\n");
  }

  static void Write(const fs::path& path, const std::string& text) {
    fs::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }

  const TestDir dir_;
  const SystemFiles files_{fs::path(dir_.path()) / "sys", fs::path(dir_.path()) / "proc"};
  const fs::path pci_ = files_.sys / "devices/pci0000:00/0000:00:02.0";
  const fs::path disk_ = pci_ / "virtio1/block/vda";
};

TEST_F(InterruptCpuTest, IsThatOfTheQueue) {
  EXPECT_EQ(InterruptCpu(makedev(254, 0), files_), 1);
  EXPECT_EQ(InterruptCpu(makedev(254, 1), files_), 1) << "a partition";
}

TEST_F(InterruptCpuTest, IsNoneWhereThereAreMoreQueues) {
  fs::create_directories(disk_ / "mq/1");
  EXPECT_EQ(InterruptCpu(makedev(254, 0), files_), -1);
}

TEST_F(InterruptCpuTest, IsNoneWhereNothingIsKnown) {
  EXPECT_EQ(InterruptCpu(makedev(7, 7), files_), -1) << "no such device";
  Write(files_.proc / "irq/36/effective_affinity_list", "0-1\n");
  EXPECT_EQ(InterruptCpu(makedev(254, 0), files_), -1) << "several CPUs";
  Write(files_.proc / "interrupts", "");
  EXPECT_EQ(InterruptCpu(makedev(254, 0), files_), -1) << "no interrupt yet";
  fs::remove_all(pci_ / "msi_irqs");
  EXPECT_EQ(InterruptCpu(makedev(254, 0), files_), -1) << "a device without such interrupts";
  EXPECT_EQ(InterruptCpu("/no/such/file"), -1);
}

TEST(CpuStay, KeepsToWhatTheThreadMayUse) {
  std::thread([] {
    cpu_set_t before, after;
    ASSERT_EQ(sched_getaffinity(0, sizeof(before), &before), 0);
    CpuStay(-1).Set(true);
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
      if (!CPU_ISSET(cpu, &before)) CpuStay(cpu).Set(true);
    ASSERT_EQ(sched_getaffinity(0, sizeof(after), &after), 0);
    EXPECT_TRUE(CPU_EQUAL(&before, &after));
    int first = 0;
    while (!CPU_ISSET(first, &before)) ++first;
    CpuStay stay(first);
    stay.Set(true);
    ASSERT_EQ(sched_getaffinity(0, sizeof(after), &after), 0);
    EXPECT_EQ(CPU_COUNT(&after), 1);
    EXPECT_TRUE(CPU_ISSET(first, &after));
    stay.Set(false);
    ASSERT_EQ(sched_getaffinity(0, sizeof(after), &after), 0);
    EXPECT_TRUE(CPU_EQUAL(&before, &after));
  }).join();
}

}  // namespace
}  // namespace terrace
