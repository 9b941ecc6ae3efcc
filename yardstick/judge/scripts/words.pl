# An index of a text, in hashes of hashes of lists.
use strict;
use warnings;
my (%index, $number);
while (my $line = <>) {
    my @words = split ' ', lc $line;
    for my $at (0 .. $#words) {
        push @{ $index{ $words[$at] }{ length $line } }, $number++ . ":$at";
    }
}
my @found = map {
    my $word = $_;
    map { [ $word, $_, scalar @{ $index{$word}{$_} } ] } sort keys %{ $index{$word} }
} sort keys %index;
my @top = sort { $b->[2] <=> $a->[2] || $a->[0] cmp $b->[0] || $a->[1] <=> $b->[1] } @found;
print join(' ', @$_), "\n" for @top[ 0 .. 20 ];
my $all = join ',', map { my $w = $_; map { @{ $index{$w}{$_} } } sort keys %{ $index{$w} } } sort keys %index;
print length $all, "\n";
