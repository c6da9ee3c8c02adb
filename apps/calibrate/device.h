#pragma once

#include "../../kernels/executor.h"
#include "measurement.h"

// The ceilings of one CUDA device. Times are those of device events around one launch, after launches that are not counted.

namespace tcbound::calibrate {

void         warm_up(Executor &device); // until the clocks have left their idle state
Measurements measure_memory(Executor &device, const Progress &progress);
Measurements measure_arithmetic(Executor &device, const Progress &progress);
Measurements measure_launch(Executor &device, const Progress &progress);

} // namespace tcbound::calibrate
