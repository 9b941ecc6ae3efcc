# Lists, dictionaries, strings, procedures made and dropped, interpreters, threads' kin: coroutines.
proc random {n} { global seed; set seed [expr {($seed * 1103515245 + 12345) & 0x7fffffff}]; expr {($seed >> 8) % $n} }
set seed 7
set kept [dict create]
for {set n 0} {$n < 300000} {incr n} {
    set slot [random 3000]
    dict set kept $slot [list $n [string repeat s [random 300]] [dict create k$slot $n]]
    if {$n % 3 == 0} { dict unset kept [random 3000] }
}
set text ""
foreach slot [lsort -integer [dict keys $kept]] { append text "$slot [string length [lindex [dict get $kept $slot] 1]]\n" }
puts "kept [dict size $kept] [zlib crc32 $text]"
set lines {}
for {set n 0} {$n < 100000} {incr n} { lappend lines "line $n [expr {$n * 7919 % 1009}]" }
set sorted [lsort -index 2 -integer $lines]
puts "sorted [lindex $sorted 0] [lindex $sorted end] [zlib crc32 $sorted]"
puts "matches [regexp -all -line {^line (\d+) 7\d*$} [join $lines \n]]"
puts "replaced [zlib crc32 [regsub -all {(\d)(\d)} [join $lines \n] {\2\1}]]"
for {set n 0} {$n < 3000} {incr n} {
    proc made$n {x} "return \[expr {\$x * $n + [string length [string repeat p [random 500]]]}\]"
    incr total [made$n 3]
    if {$n % 2} { rename made$n {} }
}
puts "procedures $total"
for {set n 0} {$n < 60} {incr n} {
    set i [interp create]
    incr answers [$i eval {set l {}; for {set k 0} {$k < 2000} {incr k} { lappend l $k }; llength [lreverse $l]}]
    interp delete $i
}
puts "interpreters $answers"
proc counter {from} { yield; while 1 { yield [string repeat c [incr from]] } }
for {set n 0} {$n < 400} {incr n} { coroutine c$n counter $n; incr length [string length [c$n]] }
puts "coroutines $length"
array set table {}
for {set n 0} {$n < 200000} {incr n} { append table([expr {$n % 20000}]) "$n," }
set all 0
foreach {k v} [array get table] { incr all [string length $v] }
puts "table [array size table] $all"
set packed [zlib compress [join $lines \n] 9]
puts "zlib [string length $packed] [expr {[zlib decompress $packed] eq [join $lines \n]}]"
puts "big [zlib crc32 [expr {3 ** 8000}]]"
