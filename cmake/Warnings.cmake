# Warnings are errors in our own code; headers of others are SYSTEM includes.
add_library(tcbound_warnings INTERFACE)
target_compile_options(tcbound_warnings INTERFACE
  $<$<COMPILE_LANGUAGE:C,CXX>:-Wall;-Wextra;-Wshadow;-Werror>
  $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall,-Wextra,-Werror;-Werror=all-warnings>)
