# Writes into FILE what `hakmem --version` says of the commit that SOURCE is: "commit 0123456789ab", with
# "+changes" where files differ from it, or why it is not known. In an archive of git's, cmake/commit has the
# commit; in a clone git is asked. It runs with every build, since a commit or a change configures nothing anew.
#
#   cmake -D SOURCE=FOLDER -D FILE=FILE -P commit.cmake
file(STRINGS ${SOURCE}/cmake/commit says LIMIT_COUNT 1)
if(says MATCHES "^commit ([0-9a-f]+)$")
    string(SUBSTRING ${CMAKE_MATCH_1} 0 12 short)
    set(says "commit ${short}")
elseif(says MATCHES "Format")
    # Of this folder alone: a repository around it would name a commit of another project.
    if(EXISTS ${SOURCE}/.git)
        execute_process(
            COMMAND git -C ${SOURCE} describe --always --abbrev=12 --exclude=* --dirty=+changes
            OUTPUT_VARIABLE named OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
        set(says "commit ${named}")
        if(failed)
            set(says "commit not known: 'git describe' failed in the source folder")
        endif()
    else()
        set(says "commit not known: built outside a git clone")
    endif()
endif()
# Left alone if it is the same.
file(CONFIGURE OUTPUT ${FILE} CONTENT "${says}\n" @ONLY)
