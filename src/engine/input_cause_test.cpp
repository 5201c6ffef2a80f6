// Each cause from a loader's sums that show it, and not from those that nearly do.
#include "engine/input_cause.h"

#include <gtest/gtest.h>

namespace stepscope::engine {
namespace {

using enum LoaderPart;

// A second of loading: 100 batches of 10 ms by each worker; training waits 6 of its 10 ms.
class Loader {
 public:
  explicit Loader(int32_t workers = 1) {
    history.workers = workers;
    history.prefetch_factor = 2;
    for (int32_t i = 0; i < std::max(workers, 1); ++i) {
      LoaderWorker& w = history.worker(i);
      w.processes = 1;
      w.batches = w.asked = 100;
      w.samples = 400;
      w[kFetch] = w[kDetailFetch] = kSecond;
      w[kWait] = kSecond / 100;
      if (workers > 0) w[kCpu] = kSecond;
      w.batch_ns.add(kSecond / 100, 100);
      w.late_ns = kSecond / 2;
      history.waited_ns += w.late_ns;
    }
    history.asked = history.asked_training = 100 * std::max(workers, 1);
    history.starts = history.epochs = 1;
  }
  LoaderWorker& worker(int32_t number = 0) { return history.worker(number); }
  InputCase input(double cores = 2) {
    view.emplace(history);
    return {.loader = *view,
            .step_ms = 10,
            .fetch_share = 0.6,
            .cores = cores,
            .cores_why = number(cores) + " cores are usable"};
  }
  static std::string number(double v) { return std::to_string(static_cast<int>(v)); }

  static constexpr int64_t kSecond = 1'000'000'000;
  LoaderHistory history;
  std::optional<LoaderView> view;
};

void slow_down(LoaderWorker& w, int64_t factor) {
  for (const LoaderPart part : {kFetch, kDetailFetch, kCpu}) w[part] *= factor;
}

TEST(InputCause, TheTransformThatTakesMostIsNamedAndWorkersComeSecond) {
  Loader loader;
  loader.history.transform_ns = {{"Resize", 700'000'000}, {"Flip", 100'000'000}};
  const InputCause cause = input_cause(loader.input(4));
  EXPECT_EQ(cause.name, "SLOW_TRANSFORM");
  EXPECT_NE(cause.words.find("Resize takes 70 %"), std::string::npos) << cause.words;
  ASSERT_EQ(cause.advice.size(), 2u);
  EXPECT_NE(cause.advice[0].text.find("Resize"), std::string::npos);
  EXPECT_NE(cause.advice[1].text.find("num_workers="), std::string::npos);
  // 10 ms, of which 3 are left: less than the 4 that the rest of the step takes.
  EXPECT_NEAR(cause.saving, 0.6, 1e-9);
}

TEST(InputCause, HalfOfTheTimeIsNotMost) {
  Loader loader;
  loader.history.transform_ns = {{"Resize", 550'000'000}};
  EXPECT_NE(input_cause(loader.input(1)).name, "SLOW_TRANSFORM");
}

TEST(InputCause, DecodingThatIsSeen) {
  Loader loader;
  loader.worker()[kDecode] = 800'000'000;
  const InputCause cause = input_cause(loader.input());
  EXPECT_EQ(cause.name, "DECODE_BOUND");
  EXPECT_NEAR(cause.saving, 0.6, 1e-9);
}

TEST(InputCause, WhatTheDatasetComputesItselfIsDecodingOnceTheCoresAreUsedUp) {
  Loader loader;
  EXPECT_EQ(input_cause(loader.input(2)).name, "DECODE_BOUND");
  EXPECT_EQ(input_cause(loader.input(8)).name, "TOO_FEW_WORKERS");
}

TEST(InputCause, WaitingOutsideOfTransformsIsStorage) {
  Loader loader;
  loader.worker()[kCpu] = 100'000'000;
  InputCause cause = input_cause(loader.input());
  EXPECT_EQ(cause.name, "STORAGE_BOUND");
  EXPECT_NE(cause.words.find("90 %"), std::string::npos) << cause.words;
  loader.history.transform_ns = {{"Sleepy", 800'000'000}};
  EXPECT_EQ(input_cause(loader.input()).name, "SLOW_TRANSFORM");
}

TEST(InputCause, PackingIsAdvisedForSmallFilesOnly) {
  const auto packs = [](int64_t read_bytes) {
    Loader loader;
    LoaderWorker& w = loader.worker();
    w[kCpu] = 100'000'000;
    w[kOpens] = 400;
    w.io_seen = true;
    w.read_bytes = read_bytes;
    const InputCause cause = input_cause(loader.input());
    EXPECT_EQ(cause.name, "STORAGE_BOUND");
    return std::any_of(cause.advice.begin(), cause.advice.end(), [](const Advice& a) {
      return a.text.find("Pack the files") != std::string::npos;
    });
  };
  EXPECT_TRUE(packs(400 * 10'000));
  EXPECT_FALSE(packs(400 * 10'000'000LL));
}

TEST(InputCause, NoCoreIsNotWaiting) {
  Loader loader;
  loader.worker()[kCpu] = 100'000'000;
  loader.worker()[kCoreWait] = 850'000'000;
  EXPECT_NE(input_cause(loader.input()).name, "STORAGE_BOUND");
}

TEST(InputCause, ThreadsThatShareOneCoreWaitForTheLock) {
  Loader loader;
  loader.history.transform_ns = {{"Resize", 1'000'000'000}};
  loader.worker()[kOtherThreads] = 900'000'000;
  EXPECT_EQ(input_cause(loader.input()).name, "GIL_BOUND");
  loader.worker()[kCpu] = 3'000'000'000;  // they run at the same time
  EXPECT_NE(input_cause(loader.input()).name, "GIL_BOUND");
  loader.worker()[kCpu] = 100'000'000;  // they wait for something else
  EXPECT_NE(input_cause(loader.input()).name, "GIL_BOUND");
}

TEST(InputCause, ThePinThread) {
  Loader loader;
  loader.history.flags = kLoaderPinned;
  loader.history.main[static_cast<size_t>(kPin)] = 800'000'000;
  const InputCause cause = input_cause(loader.input());
  EXPECT_EQ(cause.name, "GIL_BOUND");
  EXPECT_NE(cause.words.find("pins"), std::string::npos);
}

TEST(InputCause, HandingOver) {
  Loader loader;
  loader.worker()[kPickle] = 900'000'000;
  loader.history.main[static_cast<size_t>(kReceive)] = 300'000'000;
  loader.history.main[static_cast<size_t>(kUnpickle)] = 300'000'000;
  loader.worker()[kPickleBytes] = 100LL * 6'000'000;
  const InputCause cause = input_cause(loader.input());
  EXPECT_EQ(cause.name, "HANDOVER_BOUND");
  EXPECT_NE(cause.advice[0].text.find("5.7 MB a batch"), std::string::npos) << cause.advice[0].text;
}

TEST(InputCause, CollatingIsHandingOver) {
  Loader loader;
  loader.worker()[kCollate] = 700'000'000;
  EXPECT_EQ(input_cause(loader.input()).name, "HANDOVER_BOUND");
}

TEST(InputCause, OneSlowWorker) {
  Loader loader(3);
  slow_down(loader.worker(2), 4);
  loader.worker(2).late_ns = 10 * Loader::kSecond;
  loader.history.waited_ns = 11 * Loader::kSecond;
  const InputCause cause = input_cause(loader.input(8));
  EXPECT_EQ(cause.name, "SLOW_WORKER");
  EXPECT_NE(cause.words.find("worker 2 takes 40 ms a batch, the others 10 ms"), std::string::npos)
      << cause.words;
  loader.worker(2).late_ns = Loader::kSecond;  // others are waited for as well
  EXPECT_NE(input_cause(loader.input(8)).name, "SLOW_WORKER");
}

TEST(InputCause, MoreWorkersThanCores) {
  Loader loader(6);
  for (int32_t i = 0; i < 6; ++i) {
    loader.worker(i)[kCpu] = 300'000'000;
    loader.worker(i)[kCoreWait] = 650'000'000;
  }
  const InputCause cause = input_cause(loader.input(2));
  EXPECT_EQ(cause.name, "TOO_MANY_WORKERS");
  EXPECT_NE(cause.advice[0].text.find("1 worker process a rank instead of 6"), std::string::npos)
      << cause.advice[0].text;
  EXPECT_NE(input_cause(loader.input(16)).name, "TOO_MANY_WORKERS");
}

TEST(InputCause, AThrottledGroupIsTooMuchForItsQuota) {
  Loader loader(4);
  InputCase input = loader.input(2);
  EXPECT_NE(input_cause(input).name, "TOO_MANY_WORKERS");
  input.throttled_share = 0.6;
  EXPECT_EQ(input_cause(input).name, "TOO_MANY_WORKERS");
}

TEST(InputCause, UnevenSamples) {
  Loader loader;
  LoaderWorker& w = loader.worker();
  w.batch_ns = {};
  w.batch_ns.add(1'000'000, 90);
  w.batch_ns.add(20'000'000, 10);
  w[kFetch] = w[kDetailFetch] = w[kCpu] = 290'000'000;  // 2.9 ms on average
  EXPECT_EQ(input_cause(loader.input()).name, "UNEVEN_SAMPLES");
  slow_down(w, 3);  // they do not keep up on average either
  EXPECT_NE(input_cause(loader.input()).name, "UNEVEN_SAMPLES");
}

TEST(InputCause, WorkersThatStartAnew) {
  Loader loader;
  loader.history.starts = loader.history.epochs = 10;
  loader.history.start_ns = 10 * Loader::kSecond;
  InputCase input = loader.input();
  input.epoch_share = 0.7;
  input.fetch_share = 0.1;
  InputCause cause = input_cause(input);
  EXPECT_EQ(cause.name, "WORKER_RESTART");
  EXPECT_NE(cause.advice[0].text.find("persistent_workers=True"), std::string::npos);
  loader.history.flags = kLoaderPersistent;
  EXPECT_NE(input_cause(input).name, "WORKER_RESTART");
}

TEST(InputCause, D02NoWorkersThatLiveOnWhereTheDatasetKeepsItsEpoch) {
  Loader loader;
  loader.history.starts = 10;
  loader.history.flags = kLoaderOwnEpoch;
  loader.history.dataset = "Mine";
  InputCase input = loader.input();
  input.epoch_share = 0.7;
  input.fetch_share = 0.1;
  const InputCause cause = input_cause(input);
  EXPECT_EQ(cause.name, "WORKER_RESTART");
  for (const Advice& advice : cause.advice) {
    EXPECT_EQ(advice.text.find("persistent_workers=True"), std::string::npos) << advice.text;
  }
  EXPECT_NE(cause.advice[0].text.find("Leave persistent_workers off: Mine keeps its epoch"),
            std::string::npos);
}

TEST(InputCause, NoMoreWorkersThanMemoryAllows) {
  Loader loader;
  InputCase input = loader.input(16);
  EXPECT_EQ(input.room().workers, 15);
  input.memory_left_bytes = 3.0 * (1LL << 30);
  input.worker_bytes = 1.0 * (1LL << 30);
  EXPECT_EQ(input.room().workers, 3);  // the one there is, and two more in 2.7 GB
  EXPECT_NE(input.room().why.find("a worker takes 1.0 GB and 3.0 GB are left"), std::string::npos)
      << input.room().why;
  input.memory_left_bytes = 0;
  EXPECT_FALSE(more_workers(input));
}

TEST(InputCause, NoWorkersAreTooFew) {
  Loader loader(0);
  const InputCause cause = input_cause(loader.input(4));
  EXPECT_EQ(cause.name, "TOO_FEW_WORKERS");
  // rest 4 ms, batch 10 ms: three at a time hide behind the rest
  EXPECT_NEAR(cause.saving, 0.6, 1e-9);
  EXPECT_EQ(input_cause(loader.input(1)).name, "DECODE_BOUND");  // there is no core for any
}

TEST(InputCause, WhatNobodyRecordedIsUnknown) {
  LoaderHistory none;
  none.workers = 2;
  const LoaderView view(none);
  const InputCause cause =
      input_cause({.loader = view, .step_ms = 10, .fetch_share = 0.5, .cores = 4});
  EXPECT_EQ(cause.name, "UNKNOWN");
  EXPECT_DOUBLE_EQ(cause.saving, 0.5);
}

}  // namespace
}  // namespace stepscope::engine
