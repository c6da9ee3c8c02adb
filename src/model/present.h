#pragma once

#include <string>
#include <vector>

#include "machine.h"

// The machine entry of a device that is present: docs/machines.md says in which order figures are taken.

namespace tcbound::model {

// How a device that a process uses is known.
struct DeviceName {
  std::string name;          // as the driver or the operating system spells it
  std::string id;            // of its calibration file, see calibration_id() and host_calibration_id()
  std::string driver;        // its version now; empty if unknown
  int         processes = 0; // 0: a device. Else a host, by the number of processes that measured or ran at once
};

// The name of a calibration file without its ending: of a CUDA device from the 16 bytes of its UUID, of a host.
std::string calibration_id(const std::string &uuid);
std::string host_calibration_id(const std::string &hostname);

// <cache>/tcbound/machines/<id>.json, where the cache is $XDG_CACHE_HOME or $HOME/.cache; empty if neither is set.
std::string calibration_file(const std::string &id);

// The name of the built-in machine of a device by the driver's spelling of its name ("NVIDIA H200" is H200); empty if it is
// none of those that are known. Other boards of a chip (H200 NVL, A100 40 GB) have other figures and count as unknown.
std::string built_in_name_of(const std::string &device);

// The entry of a file's machines for that device: by its `device`, by the name of its built-in machine or by the device's
// own name; of a host by "host/<processes>". Null if there is none.
const Machine *entry_for(const std::vector<Machine> &machines, const DeviceName &device);

// Writes the figures that `top` gives over those of `machine`; a measured one leaves the vendor's beside it.
void overlay(Machine &machine, const Machine &top);

// What files say of a device.
struct Given {
  Machine     machine; // the figures of the calibration, and of the user's file over them
  std::string origin;  // where they come from, in words; empty if no file has an entry for the device
};

// `user_file`: of -tcbound_machine, or empty. Throws std::runtime_error that names the file and the field.
Given given_machine(const DeviceName &device, const std::string &user_file);

// The built-in machine of the device, if it has one, with what the run itself measured and what files give over it.
Machine present_machine(const DeviceName &device, const Machine &measured, const Machine &given);

} // namespace tcbound::model
