# This test adds a kernel of its own to those that the shared library hides.
get_target_property(libraries mat_compare_test LINK_LIBRARIES)
list(TRANSFORM libraries REPLACE "^tcbound::tcbound$" tcbound_static)
set_property(TARGET mat_compare_test PROPERTY LINK_LIBRARIES ${libraries})
