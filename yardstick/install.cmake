# Beside the command's Python part, in the folder `packages`, as the component `component`: what
# `hakmem bench` and `hakmem compare` measure with. The suite's sources are built where they are
# first wanted.
install(DIRECTORY ${CMAKE_CURRENT_LIST_DIR}/suite/
    DESTINATION ${packages}/hakmem_yardstick/sources COMPONENT ${component})
if(NOT SKBUILD) # pip has the package from pyproject.toml
    install(DIRECTORY ${CMAKE_CURRENT_LIST_DIR}/python/hakmem_yardstick
        DESTINATION ${packages} COMPONENT ${component} PATTERN __pycache__ EXCLUDE)
endif()
