# What is installed, and where. Every path that an installed file holds counts from where the file
# lies, so the tree may be moved afterwards; only hakmem.pc asks pkg-config for that.
#
# Components: library (libhakmem.so), development (what programs are built with), command, debug (the
# library with assertions), yardstick (what `hakmem bench` and `hakmem compare` measure with); and
# wheel, the parts of a Python package, laid out as pip wants them.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# The system's before one of a version manager: packages of parts belong to it.
set(python python3)
if(EXISTS /usr/bin/python3)
    set(python /usr/bin/python3)
endif()
set(HAKMEM_COMMAND_PYTHON ${python} CACHE STRING
    "Python that the installed command starts; needs pyelftools")
set(library_file libhakmem.so.${PROJECT_VERSION_MAJOR})
# What the Python part reads: the options, and which commit this is.
set(python_files ${PROJECT_SOURCE_DIR}/src/base/options.def ${PROJECT_BINARY_DIR}/commit)
set(yardstick ${PROJECT_SOURCE_DIR}/yardstick/install.cmake)
set(made ${PROJECT_BINARY_DIR}/install)

if(SKBUILD)
    # The same layout below an environment's folder, but for the Python part, which is where all are.
    hakmem_configure_command(${made}/hakmem
        LIBRARY ../lib/${library_file}
        PYTHON "\"$here/hakmem-python\"")
    # One file, since wheels hold no links.
    set_target_properties(hakmem_shared PROPERTIES VERSION ${PROJECT_VERSION_MAJOR})
    install(TARGETS hakmem_shared
        LIBRARY DESTINATION ${SKBUILD_DATA_DIR}/lib COMPONENT wheel NAMELINK_SKIP)
    install(PROGRAMS ${made}/hakmem DESTINATION ${SKBUILD_SCRIPTS_DIR} COMPONENT wheel)
    install(TARGETS hakmem_look hakmem_replay RUNTIME DESTINATION ${SKBUILD_DATA_DIR}/lib/hakmem COMPONENT wheel)
    # The wheel has no header, and so no manual pages of it.
    install(DIRECTORY ${PROJECT_SOURCE_DIR}/share/ DESTINATION ${SKBUILD_DATA_DIR}/share
        COMPONENT wheel PATTERN man3 EXCLUDE)
    install(FILES ${python_files} DESTINATION hakmem COMPONENT wheel)
    set(packages .)
    set(component wheel)
    include(${yardstick} OPTIONAL)
    return()
endif()

foreach(dir BINDIR LIBDIR INCLUDEDIR DATADIR MANDIR)
    if(IS_ABSOLUTE "${CMAKE_INSTALL_${dir}}")
        message(FATAL_ERROR "CMAKE_INSTALL_${dir}=${CMAKE_INSTALL_${dir}}: give it relative to the "
            "prefix; installed files find each other by relative paths")
    endif()
endforeach()

install(TARGETS hakmem_shared
    LIBRARY COMPONENT library NAMELINK_COMPONENT development)
if(TARGET hakmem_debug)
    install(TARGETS hakmem_debug LIBRARY COMPONENT debug NAMELINK_SKIP)
endif()
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE
    DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT library)

install(TARGETS hakmem_static hakmem_names_archive ARCHIVE COMPONENT development)
install(FILES ${PROJECT_BINARY_DIR}/hakmem.o
    DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/
    DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/hakmem)
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/hakmem-config.cmake.in
    ${made}/hakmem-config.cmake INSTALL_DESTINATION ${package_dir}
    PATH_VARS CMAKE_INSTALL_LIBDIR CMAKE_INSTALL_INCLUDEDIR)
write_basic_package_version_file(${made}/hakmem-config-version.cmake
    COMPATIBILITY SameMinorVersion)
install(FILES ${made}/hakmem-config.cmake ${made}/hakmem-config-version.cmake
        ${CMAKE_CURRENT_LIST_DIR}/hakmem-link.cmake
    DESTINATION ${package_dir} COMPONENT development)

# pkg-config knows the file's folder, from which the prefix is found.
set(pkgconfig_dir ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
file(RELATIVE_PATH up_to_prefix /prefix/${pkgconfig_dir} /prefix)
string(REGEX REPLACE "/$" "" up_to_prefix "${up_to_prefix}")
foreach(package hakmem hakmem-redis)
    configure_file(${CMAKE_CURRENT_LIST_DIR}/${package}.pc.in ${made}/${package}.pc @ONLY)
endforeach()
install(FILES ${made}/hakmem.pc ${made}/hakmem-redis.pc DESTINATION ${pkgconfig_dir} COMPONENT development)

# The Python part is no package of the system's Python: only the command starts it.
set(python_dir ${CMAKE_INSTALL_DATADIR}/hakmem)
file(RELATIVE_PATH to_library /prefix/${CMAKE_INSTALL_BINDIR} /prefix/${CMAKE_INSTALL_LIBDIR})
file(RELATIVE_PATH to_python /prefix/${CMAKE_INSTALL_BINDIR} /prefix/${python_dir})
hakmem_configure_command(${made}/hakmem
    LIBRARY ${to_library}/${library_file}
    PYTHON "'${HAKMEM_COMMAND_PYTHON}'"
    PART "\"$here/${to_python}/hakmem\"")
install(PROGRAMS ${made}/hakmem DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT command)
install(TARGETS hakmem_look hakmem_replay
    RUNTIME DESTINATION ${CMAKE_INSTALL_LIBDIR}/hakmem COMPONENT command)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/python/hakmem DESTINATION ${python_dir} COMPONENT command
    PATTERN __pycache__ EXCLUDE)
install(FILES ${python_files} DESTINATION ${python_dir}/hakmem COMPONENT command)
set(packages ${python_dir})
set(component yardstick)
include(${yardstick} OPTIONAL)
# Manual pages and completions lie in share/ as they will be installed: section 1 is the command's,
# section 3 the header's.
install(DIRECTORY ${PROJECT_SOURCE_DIR}/share/man/man1
    DESTINATION ${CMAKE_INSTALL_MANDIR} COMPONENT command)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/share/man/man3
    DESTINATION ${CMAKE_INSTALL_MANDIR} COMPONENT development)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/share/
    DESTINATION ${CMAKE_INSTALL_DATADIR} COMPONENT command PATTERN man EXCLUDE)
