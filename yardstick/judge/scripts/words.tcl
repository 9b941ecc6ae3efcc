# Dictionaries and lists of a text.
set file [open [lindex $argv 0]]
set index [dict create]
set number 0
while {[gets $file line] >= 0} {
    incr number
    foreach word [split $line] {
        dict lappend index $word "$number [string reverse $word]"
    }
}
foreach word [lsort [dict keys $index]] {
    set sorted [lsort -dictionary [dict get $index $word]]
    puts "$word [llength $sorted] [lindex $sorted end] [string length [join $sorted ,]]"
}
