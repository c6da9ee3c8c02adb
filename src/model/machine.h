#pragma once

#include <array>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

// What a machine can do: ceilings of its memories and of its arithmetic units. A figure that no named source gives is
// unknown, and asking for it throws; nothing is guessed. A measured figure takes precedence over the vendor's.

namespace tcbound::model {

enum class DataType { fp64, fp32, tf32, fp16, bf16 };
enum class Unit { cuda_core, tensor_core, host }; // host: the cores of a host, by vector multiply-adds
enum class Level { dram, l2, l1 };

constexpr std::size_t data_type_count = 5, unit_count = 3, level_count = 3;

const std::vector<std::string> &data_type_names(); // "fp64", ...
const std::vector<std::string> &unit_names();      // "cuda_core", "tensor_core", "host"
const std::vector<std::string> &level_names();     // "dram", "l2", "l1"

const std::string &name_of(DataType type);
const std::string &name_of(Unit unit);
const std::string &name_of(Level level);

DataType data_type_of(const std::string &name); // these throw std::invalid_argument that lists the valid names
int      element_bytes(DataType type);          // in memory: tf32 is stored as fp32

// An m x k times k x n matrix multiply-accumulate instruction.
struct MmaShape {
  std::string name;
  int         m, n, k;
};
const std::vector<MmaShape> &mma_shapes();
const MmaShape              &mma_shape_of(const std::string &name);

// A quantity in the unit that its owner states; 0 is unknown.
struct Figure {
  double      vendor = 0;
  double      measured = 0;
  std::string source;      // of the vendor's value
  std::string measured_by; // what, when and with which driver

  bool               known() const { return measured > 0 || vendor > 0; }
  bool               is_measured() const { return measured > 0; }
  double             value() const { return is_measured() ? measured : vendor; }
  const std::string &value_source() const { return is_measured() ? measured_by : source; }
};

class UnknownFigure : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

struct MemoryLevel {
  Figure bandwidth; // bytes/s, reads and writes together
  Figure capacity;  // bytes on the whole device (L1: of all SMs together)
};

struct Machine {
  std::string                          name;
  std::string                          device;       // the driver's spelling; empty where no one said
  std::string                          date, driver; // of its measurements, as its file says; else empty
  Figure                               sm_count;
  Figure                               launch; // s, an empty kernel as two device events around it time it
  std::array<MemoryLevel, level_count> levels;

  std::array<std::array<Figure, data_type_count>, unit_count> peaks;     // FLOP/s, dense
  std::map<std::pair<std::string, DataType>, Figure>          mma_peaks; // FLOP/s by the shape of the instruction

  // Values in the units above. They throw UnknownFigure, which names the machine and the figure.
  double sm_count_value() const;
  double launch_seconds() const;
  double bandwidth(Level level) const;
  double capacity(Level level) const;
  double peak(Unit unit, DataType type) const;
  double mma_peak(const std::string &shape, DataType type) const;

  MemoryLevel       &at(Level level) { return levels[static_cast<std::size_t>(level)]; }
  const MemoryLevel &at(Level level) const { return levels[static_cast<std::size_t>(level)]; }
  Figure       &at(Unit unit, DataType type) { return peaks[static_cast<std::size_t>(unit)][static_cast<std::size_t>(type)]; }
  const Figure &at(Unit unit, DataType type) const {
    return peaks[static_cast<std::size_t>(unit)][static_cast<std::size_t>(type)];
  }
};

std::vector<Machine> built_in_machines();

// The machines of a JSON file (docs/machines.md) on top of `machines`: an entry of a known name replaces the figures that it
// gives, another entry is added. An entry with "measured" gives measured figures, else figures of its "source".
// Throws std::runtime_error that names the file and the field.
std::vector<Machine> load_machines(const std::string &file, std::vector<Machine> machines);

// Throws std::invalid_argument that lists the valid names.
const Machine &find_machine(const std::vector<Machine> &machines, const std::string &name);

// The index of a name in a non-empty list; throws std::invalid_argument with the nearest name and all valid ones.
std::size_t index_of_name(const std::string &what, const std::string &name, const std::vector<std::string> &valid);

} // namespace tcbound::model
