# Hashes of arrays of strings, nested structures, matching, sorting and growing strings.
use strict;
use warnings;

my ($turns) = @ARGV;
my ($seed, $sum) = (12345, 0);

sub random {
    $seed = ($seed * 1103515245 + 12345) & 0x7fffffff;
    return ($seed >> 8) % $_[0];
}

sub mix { $sum = ($sum * 33 + unpack("%32C*", $_[0]) + length $_[0]) & 0xffffffff }

sub lists {
    my ($count) = @_;
    my %kept;
    for my $i (1 .. $count) {
        push @{ $kept{ "key" . random($count / 10) } }, "v" x random(90);
        delete $kept{ "key" . random($count / 10) } if $i % 3 == 0;
    }
    mix("$_=" . join ",", @{ $kept{$_} }) for sort keys %kept;
}

sub words {
    my ($count) = @_;
    my $text = join " ", map { "w" . random(500) . ("x" x random(9)) } 1 .. $count;
    my %seen;
    $seen{$1}++ while $text =~ /\bw(\d+x*)\b/g;
    mix("$_$seen{$_}") for sort { $seen{$b} <=> $seen{$a} || $a cmp $b } keys %seen;
    mix(join "", map { scalar reverse } split / /, $text);
}

sub tree {
    my ($depth) = @_;
    return $depth ? { l => tree($depth - 1), r => tree($depth - 1), k => "n$depth" } : { k => "leaf" };
}

sub weigh { my ($n) = @_; return length($n->{k}) + ($n->{l} ? weigh($n->{l}) + weigh($n->{r}) : 0) }

for my $turn (1 .. $turns) {
    lists(300_000);
    words(80_000);
    mix(weigh(tree(15)));
    print "$turn $sum\n";
}
