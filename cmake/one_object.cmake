# Links the objects of object libraries into one, in which names that are hidden in a shared library
# are local. All but one: a linker keeps one copy, of all objects, of the word with C++'s personality,
# and those that refer to another copy have to find it by its name. A program may have its own new and
# delete, so those are weak.
#
#   add_one_object(TARGET FILE OBJECT_LIBRARY...)
function(add_one_object target file)
    list(TRANSFORM ARGN REPLACE "(.+)" "$<TARGET_OBJECTS:\\1>" OUTPUT_VARIABLE objects)
    add_custom_command(OUTPUT ${file}
        COMMAND ${CMAKE_C_COMPILER} -r -nostdlib -o ${file} ${objects}
        COMMAND ${CMAKE_OBJCOPY} --localize-hidden ${file}
        COMMAND ${CMAKE_OBJCOPY} --wildcard --weaken-symbol=*_Z* ${file}
        COMMAND ${CMAKE_OBJCOPY} --globalize-symbol=DW.ref.__gxx_personality_v0 ${file}
        DEPENDS ${objects}
        COMMAND_EXPAND_LISTS VERBATIM)
    add_custom_target(${target} ALL DEPENDS ${file})
    add_dependencies(${target} ${ARGN}) # make has no rules for other folders' objects
endfunction()
