# These tests reach into what the shared library hides: kernels of their own, counters of their own.
foreach(name mat_compare_test mat_counters_test)
  get_target_property(libraries ${name} LINK_LIBRARIES)
  list(TRANSFORM libraries REPLACE "^tcbound::tcbound$" tcbound_static)
  set_property(TARGET ${name} PROPERTY LINK_LIBRARIES ${libraries})
endforeach()
